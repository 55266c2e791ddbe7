// Parts of TorchScript that tch does not bring to Rust: files in memory, buffers, attributes, signatures, copies that share weights,
// and inference mode.
//
// Exceptions of libtorch do not leave this file. Functions return true on success; their text, JSON or the error, goes to the
// listener.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/Context.h>
#include <ATen/autocast_mode.h>
#include <c10/core/InferenceMode.h>
#include <caffe2/serialize/read_adapter_interface.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/passes/inliner.h>
#include <torch/csrc/jit/runtime/graph_executor.h>
#include <torch/csrc/jit/serialization/import.h>

using torch::jit::IValue;

namespace {

using Listener = void (*)(void* context, const char* text, size_t length);
using Visitor = void (*)(void* context, const char* name, size_t length, at::Tensor* tensor, bool is_weight);

// Larger tensors of an attribute are described by their shape.
constexpr int64_t kShownValues = 256;
constexpr const char* kMetadata = "metadata.json";

struct Script {
  torch::jit::Module module;
  std::string metadata;
  c10::DeviceType device;
  // True if a method may draw random numbers.
  bool draws_noise;
  // Precision of weights and states.
  at::ScalarType precision;
};

bool draws_noise(const torch::jit::Block* block) {
  const auto nodes = block->nodes();
  return std::any_of(nodes.begin(), nodes.end(), [](const torch::jit::Node* node) {
    const auto blocks = node->blocks();
    return node->isNondeterministic() ||
        std::any_of(blocks.begin(), blocks.end(), [](const torch::jit::Block* nested) { return draws_noise(nested); });
  });
}

bool draws_noise(const torch::jit::Module& module) {
  const auto methods = module.get_methods();
  return std::any_of(methods.begin(), methods.end(), [](const torch::jit::Method& method) {
    const auto graph = method.graph()->copy();
    torch::jit::Inline(*graph);
    return draws_noise(graph->block());
  });
}

// Generators belong to the process: a seed counts until the next program sets its own.
std::mutex& generators() {
  static std::mutex mutex;
  return mutex;
}

// Guard of autocast: while it exists, its thread computes convolutions and products in the script's precision, and what needs f32 in
// f32.
class Autocast {
 public:
  explicit Autocast(const Script& script)
      : device_(script.device),
        was_enabled_(at::autocast::is_autocast_enabled(device_)),
        before_(at::autocast::get_autocast_dtype(device_)) {
    const bool is_narrow = script.precision != at::kFloat;
    at::autocast::set_autocast_enabled(device_, is_narrow);
    if (is_narrow) {
      at::autocast::set_autocast_dtype(device_, script.precision);
    }
  }

  ~Autocast() {
    at::autocast::set_autocast_enabled(device_, was_enabled_);
    at::autocast::set_autocast_dtype(device_, before_);
  }

  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  c10::DeviceType device_;
  bool was_enabled_;
  at::ScalarType before_;
};

// Reads a file in memory.
class MemoryReader : public caffe2::serialize::ReadAdapterInterface {
 public:
  MemoryReader(const char* bytes, size_t length) : bytes_(bytes), length_(length) {}

  size_t size() const override {
    return length_;
  }

  size_t read(uint64_t position, void* out, size_t count, const char*) const override {
    if (position >= length_) {
      return 0;
    }
    const size_t there = std::min<size_t>(count, length_ - position);
    std::memcpy(out, bytes_ + position, there);
    return there;
  }

 private:
  const char* bytes_;
  size_t length_;
};

struct Say {
  Listener listener;
  void* context;

  void operator()(const std::string& text) const {
    listener(context, text.data(), text.size());
  }
};

// Runs `work` in inference mode and reports its error.
template <typename Work>
bool guarded(Say say, Work work) {
  try {
    c10::InferenceMode inference;
    // The profiling executor would recompile a graph while it plays, whenever shapes change.
    torch::jit::GraphOptimizerEnabledGuard as_it_is(false);
    work();
    return true;
  } catch (const c10::Error& error) {
    say(error.what_without_backtrace());
  } catch (const std::exception& error) {
    say(error.what());
  } catch (...) {
    say("libtorch broke down without a word");
  }
  return false;
}

void write_text(std::string& out, const std::string& text) {
  out += '"';
  for (const char letter : text) {
    const auto code = static_cast<unsigned char>(letter);
    if (letter == '"' || letter == '\\') {
      out += '\\';
      out += letter;
    } else if (code < 0x20) {
      constexpr const char* digits = "0123456789abcdef";
      out += "\\u00";
      out += digits[code >> 4];
      out += digits[code & 15];
    } else {
      out += letter;
    }
  }
  out += '"';
}

void write_number(std::string& out, double value) {
  if (!std::isfinite(value)) {
    out += "null";
    return;
  }
  char text[32];
  std::snprintf(text, sizeof text, "%.17g", value);
  out += text;
}

template <typename Items, typename Write>
void write_list(std::string& out, const Items& items, Write write) {
  out += '[';
  const char* between = "";
  for (const auto& item : items) {
    out += between;
    write(item);
    between = ",";
  }
  out += ']';
}

void write_value(std::string& out, const IValue& value) {
  const auto nested = [&](const IValue& item) { write_value(out, item); };
  if (value.isBool()) {
    out += value.toBool() ? "true" : "false";
  } else if (value.isInt()) {
    out += std::to_string(value.toInt());
  } else if (value.isDouble()) {
    write_number(out, value.toDouble());
  } else if (value.isString()) {
    write_text(out, value.toStringRef());
  } else if (value.isTuple()) {
    write_list(out, value.toTupleRef().elements(), nested);
  } else if (value.isList()) {
    write_list(out, value.toList().vec(), nested);
  } else if (value.isTensor() && value.toTensor().defined() && value.toTensor().numel() <= kShownValues) {
    const at::Tensor flat = value.toTensor().detach().to(at::kCPU, at::kDouble).contiguous().view({-1});
    const double* values = flat.const_data_ptr<double>();
    write_list(out, std::vector<double>(values, values + flat.numel()), [&](double item) { write_number(out, item); });
  } else {
    out += "null";
  }
}

// Converts a number to the type that the method takes.
IValue argument(double value, const c10::TypePtr& type) {
  switch (type->kind()) {
    case c10::TypeKind::BoolType:
      return value >= 0.5;
    case c10::TypeKind::IntType:
      return static_cast<int64_t>(std::llround(value));
    case c10::TypeKind::TensorType:
      return at::tensor(value, at::kFloat);
    // Optional and Union, such as the Optional[int] of nn-tilde 1.6.
    case c10::TypeKind::OptionalType:
    case c10::TypeKind::UnionType: {
      const bool is_whole = value == std::floor(value);
      const c10::TypeKind first = is_whole ? c10::TypeKind::IntType : c10::TypeKind::FloatType;
      const c10::TypeKind second = is_whole ? c10::TypeKind::FloatType : c10::TypeKind::IntType;
      for (const c10::TypeKind kind : {first, second, c10::TypeKind::BoolType, c10::TypeKind::TensorType}) {
        for (const c10::TypePtr& contained : type->containedTypes()) {
          if (contained->kind() == kind) {
            return argument(value, contained);
          }
        }
      }
      return value;
    }
    default:
      return value;
  }
}

// Converts a text to the type that the method takes: itself, true or false, or a number.
IValue text_argument(const std::string& text, const c10::TypePtr& type) {
  const auto contained = type->containedTypes();
  const auto is_text = [](const c10::TypePtr& item) { return item->kind() == c10::TypeKind::StringType; };
  if (is_text(type) || std::any_of(contained.begin(), contained.end(), is_text)) {
    return text;
  }
  if (text == "true" || text == "false") {
    return argument(text == "true" ? 1 : 0, type);
  }
  size_t read = 0;
  double value = 0;
  try {
    value = std::stod(text, &read);
  } catch (const std::exception&) {
    read = 0;
  }
  TORCH_CHECK(!text.empty() && read == text.size(), '"', text, "\" is not a number");
  return argument(value, type);
}

const at::Tensor& first_tensor(const IValue& result) {
  const IValue* value = &result;
  if (value->isTuple() && !value->toTupleRef().elements().empty()) {
    value = &value->toTupleRef().elements()[0];
  }
  TORCH_CHECK(value->isTensor(), "it gives ", value->tagKind(), " where a tensor is due");
  return value->toTensor();
}

} // namespace

extern "C" {

// Otherwise cuDNN's convolutions would round f32 to TF32's 10 bits of mantissa, and differ from the CPU.
void ondes_full_precision() {
  at::globalContext().setAllowTF32CuDNN(false);
  at::globalContext().setAllowTF32CuBLAS(false);
}

bool ondes_script_load(
    const char* bytes,
    size_t length,
    int cuda,
    Script** script,
    Listener listener,
    void* context) {
  return guarded({listener, context}, [&] {
    torch::jit::ExtraFilesMap extra{{kMetadata, ""}};
    const c10::Device device = cuda < 0 ? c10::Device(at::kCPU) : c10::Device(at::kCUDA, static_cast<int8_t>(cuda));
    torch::jit::Module module = torch::jit::load(std::make_unique<MemoryReader>(bytes, length), device, extra);
    module.eval();
    const bool is_noisy = draws_noise(module);
    *script = new Script{std::move(module), extra[kMetadata], device.type(), is_noisy, at::kFloat};
  });
}

void ondes_script_free(Script* script) {
  delete script;
}

// Converts weights and states from f32 to bf16 or f16.
bool ondes_script_narrow(Script* script, bool to_bf16, Listener listener, void* context) {
  return guarded({listener, context}, [&] {
    script->precision = to_bf16 ? at::kBFloat16 : at::kHalf;
    // Shared tensors stay shared. The old ones are kept until the end, so that no new tensor reuses an address.
    std::unordered_map<const void*, std::pair<at::Tensor, at::Tensor>> narrowed;
    for (const torch::jit::Module& module : script->module.modules()) {
      const auto object = module._ivalue();
      for (size_t slot = 0; slot < object->slots().size(); ++slot) {
        const IValue value = object->getSlot(slot);
        if (!value.isTensor() || !value.toTensor().defined() || value.toTensor().scalar_type() != at::kFloat) {
          continue;
        }
        const at::Tensor& wide = value.toTensor();
        auto& [before, after] = narrowed[wide.unsafeGetTensorImpl()];
        if (!after.defined()) {
          before = wide;
          after = wide.to(script->precision);
        }
        object->setSlot(slot, after);
      }
    }
  });
}

// Copies a module and its state; weights are shared.
bool ondes_script_copy(const Script* script, Script** copy, Listener listener, void* context) {
  return guarded({listener, context}, [&] {
    IValue::HashIdentityIValueMap shared;
    for (const at::Tensor& weight : script->module.parameters()) {
      shared.emplace(weight, weight);
    }
    const IValue object = IValue(script->module._ivalue()).deepcopy(shared);
    torch::jit::Module module(object.toObject());
    *copy = new Script{std::move(module), script->metadata, script->device, script->draws_noise, script->precision};
  });
}

void ondes_script_metadata(const Script* script, Listener listener, void* context) {
  listener(context, script->metadata.data(), script->metadata.size());
}

// Lists the names of all methods, such as ["forward"].
bool ondes_script_methods(const Script* script, Listener listener, void* context) {
  const Say say{listener, context};
  return guarded(say, [&] {
    std::string out;
    write_list(out, script->module.get_methods(), [&](const torch::jit::Method& method) { write_text(out, method.name()); });
    say(out);
  });
}

// Returns an attribute of the module itself; null without one.
bool ondes_script_attribute(const Script* script, const char* name, Listener listener, void* context) {
  const Say say{listener, context};
  return guarded(say, [&] {
    std::string out;
    write_value(out, script->module.hasattr(name) ? script->module.attr(name) : IValue());
    say(out);
  });
}

// Returns the state besides tensors, to detect changes.
bool ondes_script_scalars(const Script* script, Listener listener, void* context) {
  const Say say{listener, context};
  return guarded(say, [&] {
    std::string out = "[";
    for (const auto& attribute : script->module.named_attributes()) {
      if (!attribute.value.isTensor() && !attribute.value.isModule()) {
        write_value(out, attribute.value);
        out += ',';
      }
    }
    out += "null]";
    say(out);
  });
}

// Calls a method with numbers and returns the result as JSON.
bool ondes_script_call(
    Script* script,
    const char* name,
    const double* values,
    size_t count,
    Listener listener,
    void* context) {
  const Say say{listener, context};
  return guarded(say, [&] {
    const torch::jit::Method method = script->module.get_method(name);
    const auto& expected = method.function().getSchema().arguments();
    TORCH_CHECK(count < expected.size(), name, " takes ", expected.size() - 1, " values, there are ", count);
    std::vector<IValue> arguments;
    for (size_t index = 0; index < count; ++index) {
      arguments.push_back(argument(values[index], expected[index + 1].type()));
    }
    const Autocast autocast(*script);
    std::string out;
    write_value(out, method(std::move(arguments)));
    say(out);
  });
}

// Calls a method with texts and returns the result as JSON.
bool ondes_script_call_texts(
    Script* script,
    const char* name,
    const char* const* texts,
    size_t count,
    Listener listener,
    void* context) {
  const Say say{listener, context};
  return guarded(say, [&] {
    const torch::jit::Method method = script->module.get_method(name);
    const auto& expected = method.function().getSchema().arguments();
    TORCH_CHECK(count < expected.size(), name, " takes ", expected.size() - 1, " values, there are ", count);
    std::vector<IValue> arguments;
    for (size_t index = 0; index < count; ++index) {
      arguments.push_back(text_argument(texts[index], expected[index + 1].type()));
    }
    std::string out;
    write_value(out, method(std::move(arguments)));
    say(out);
  });
}

// Sets a buffer of nn-tilde 1.6 to a sound [channel, frame] and returns the result as JSON.
bool ondes_script_set_sound(
    Script* script,
    const char* buffer,
    const at::Tensor* sound,
    int64_t sample_rate,
    Listener listener,
    void* context) {
  const Say say{listener, context};
  return guarded(say, [&] {
    std::string out;
    write_value(out, script->module.get_method("set_buffer_attribute")({std::string(buffer), *sound, sample_rate}));
    say(out);
  });
}

// Visits all tensors, including weights; they remain the module's own.
bool ondes_script_tensors(const Script* script, Visitor visitor, void* seen, Listener listener, void* context) {
  return guarded({listener, context}, [&] {
    std::unordered_set<const void*> weights;
    for (const at::Tensor& weight : script->module.parameters()) {
      weights.insert(weight.unsafeGetTensorImpl());
    }
    for (const auto& attribute : script->module.named_attributes()) {
      if (attribute.value.isTensor() && attribute.value.toTensor().defined()) {
        const at::Tensor& tensor = attribute.value.toTensor();
        const bool is_weight = weights.count(tensor.unsafeGetTensorImpl()) > 0;
        visitor(seen, attribute.name.data(), attribute.name.size(), new at::Tensor(tensor), is_weight);
      }
    }
  });
}

// Runs a method on tensors, which are not modified; its random numbers follow the seed.
bool ondes_script_run(
    Script* script,
    const char* name,
    at::Tensor* const* inputs,
    size_t count,
    uint64_t seed,
    at::Tensor** output,
    Listener listener,
    void* context) {
  return guarded({listener, context}, [&] {
    std::vector<IValue> arguments;
    for (size_t index = 0; index < count; ++index) {
      arguments.emplace_back(*inputs[index]);
    }
    const Autocast autocast(*script);
    std::unique_lock<std::mutex> seeded(generators(), std::defer_lock);
    if (script->draws_noise) {
      seeded.lock();
      at::manual_seed(seed);
    }
    *output = new at::Tensor(first_tensor(script->module.get_method(name)(std::move(arguments))));
  });
}

// Guard of inference mode for its thread.
void* ondes_inference_begin() {
  return new c10::InferenceMode();
}

void ondes_inference_end(void* inference) {
  delete static_cast<c10::InferenceMode*>(inference);
}

} // extern "C"

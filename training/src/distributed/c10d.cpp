// Processes that train together, by the collectives of libtorch (c10d) over Gloo, and over NCCL for tensors on GPUs.

#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <dlfcn.h>

#include <cstdlib>
#include <cstring>
#include <optional>

namespace {

using torch::autograd::Variable;

// Copies the first line of what went wrong; the rest is a backtrace.
char* first_line(const char* text) {
  const std::string whole(text);
  return strdup(whole.substr(0, whole.find('\n')).c_str());
}

// Runs something; returns null, or what went wrong.
template <typename Run>
char* guarded(const Run& run) {
  try {
    run();
    return nullptr;
  } catch (const c10::Error& error) {
    return first_line(error.what_without_backtrace());
  } catch (const std::exception& error) {
    return first_line(error.what());
  } catch (...) {
    return strdup("unknown error");
  }
}

// Constructors in libtorch_cuda.so, which is not on every machine, and whose headers need those of CUDA and NCCL.
constexpr char NCCL_OPTIONS[] = "_ZN4c10d16ProcessGroupNCCL7OptionsC1Eb";
constexpr char NCCL[] =
    "_ZN4c10d16ProcessGroupNCCLC1EN3c1013intrusive_ptrINS_5StoreENS1_6detail34intrusive_target_default_null_typeIS3_"
    "EEEEiiNS2_INS0_7OptionsENS5_IS8_EEEE";
// Bytes for either object: in libtorch 2.11.0, the only one that this links with, they have 248 and 1112.
constexpr size_t ROOM = 4096;

// Constructs an object of a class derived from `Base`, with `Base` at its start, by the name of its constructor. The object
// is freed by its own destructor.
template <typename Base, typename... Arguments>
c10::intrusive_ptr<Base> constructed(const char* constructor, Arguments... arguments) {
  void* const function = dlsym(RTLD_DEFAULT, constructor);
  TORCH_CHECK(function != nullptr, "this libtorch has no NCCL");
  void* const place = ::operator new(ROOM);
  try {
    reinterpret_cast<void (*)(void*, Arguments...)>(function)(place, std::move(arguments)...);
  } catch (...) {
    ::operator delete(place);
    throw;
  }
  return c10::intrusive_ptr<Base>::unsafe_steal_from_new(static_cast<Base*>(place));
}

struct Group {
  c10::intrusive_ptr<c10d::Store> store;
  c10::intrusive_ptr<c10d::Backend> gloo;
  // Null until GPUs are joined.
  c10::intrusive_ptr<c10d::Backend> nccl;

  const c10::intrusive_ptr<c10d::Backend>& backend(const at::Tensor& tensor) const {
    TORCH_CHECK(!tensor.is_cuda() || nccl, "the GPUs are not joined");
    return tensor.is_cuda() ? nccl : gloo;
  }

  c10::intrusive_ptr<c10d::Work> start_sum(const at::Tensor& tensor) const {
    std::vector<at::Tensor> tensors{tensor};
    return backend(tensor)->allreduce(tensors);
  }
};

// Sums a flat gradient over the processes, in buckets that start as soon as the backward pass has filled them. The
// order of the buckets is the same in all processes: from the end of the gradient, where the backward pass begins.
struct Buckets {
  struct Bucket {
    at::Tensor gradients;
    size_t leaves = 0;
    size_t missing = 0;
    c10::intrusive_ptr<c10d::Work> work;
  };

  const Group* group;
  std::vector<Bucket> buckets;
  size_t next = 0;
  bool armed = false;
  std::optional<std::string> error;

  void arm() {
    for (Bucket& bucket : buckets) {
      bucket.missing = bucket.leaves;
      bucket.work.reset();
    }
    next = 0;
    armed = true;
    error.reset();
  }

  // A weight of a bucket has its gradient.
  void filled(size_t bucket) {
    if (!armed) {
      return;
    }
    if (buckets[bucket].missing > 0) {
      --buckets[bucket].missing;
    }
    while (next < buckets.size() && buckets[next].missing == 0 && !error) {
      start();
    }
  }

  void start() {
    // An exception must not pass through the backward pass, which is called from Rust.
    try {
      buckets[next].work = group->start_sum(buckets[next].gradients);
    } catch (const std::exception& exception) {
      error = exception.what();
    }
    ++next;
  }

  // Starts what is left, such as weights that no loss depends on, and waits for all.
  void finish() {
    armed = false;
    while (next < buckets.size() && !error) {
      start();
    }
    TORCH_CHECK(!error, error.value_or(""));
    for (Bucket& bucket : buckets) {
      bucket.work->wait();
    }
  }
};

struct FilledHook final : torch::autograd::PostAccumulateGradHook {
  std::weak_ptr<Buckets> buckets;
  size_t bucket = 0;

  void operator()(const Variable&) override {
    if (const auto shared = buckets.lock()) {
      shared->filled(bucket);
    }
  }
};

}

extern "C" {

// Joins a group of processes, which meet at a host and port; `serves` tells that this one opens the port. `address` is
// this machine's, as the others see it. Sets `out`; returns null, or what went wrong.
char* ondes_group_join(const char* host, uint16_t port, bool serves, const char* prefix, const char* address, int rank,
                       int size, double timeout_s, Group** out) {
  return guarded([&] {
    const auto timeout = std::chrono::milliseconds(static_cast<int64_t>(1e3 * timeout_s));
    c10d::TCPStoreOptions options;
    options.port = port;
    options.isServer = serves;
    options.waitWorkers = false;
    options.timeout = timeout;
    auto store = c10::make_intrusive<c10d::PrefixStore>(prefix, c10::make_intrusive<c10d::TCPStore>(host, options));
    const auto gloo = c10d::ProcessGroupGloo::Options::create(timeout);
    gloo->devices.push_back(c10d::ProcessGroupGloo::createDeviceForHostname(address));
    auto processes = c10::make_intrusive<c10d::ProcessGroupGloo>(store, rank, size, gloo);
    *out = new Group{std::move(store), std::move(processes), {}};
  });
}

// Returns whether NCCL is there.
bool ondes_group_has_nccl() {
  return dlsym(RTLD_DEFAULT, NCCL) != nullptr;
}

// Joins the GPUs of all processes, each of which must have its own. Returns null, or what went wrong.
char* ondes_group_join_gpus(Group* group, double timeout_s) {
  return guarded([&] {
    // A failed sum is to end this call, not the process.
    setenv("TORCH_NCCL_BLOCKING_WAIT", "1", 0);
    auto options = constructed<c10d::Backend::Options>(NCCL_OPTIONS, false);
    options->timeout = std::chrono::milliseconds(static_cast<int64_t>(1e3 * timeout_s));
    const auto& gloo = group->gloo;
    auto store = c10::make_intrusive<c10d::PrefixStore>("nccl", group->store);
    group->nccl = constructed<c10d::Backend, c10::intrusive_ptr<c10d::Store>, int, int>(
        NCCL, std::move(store), gloo->getRank(), gloo->getSize(), std::move(options));
  });
}

void ondes_group_leave(Group* group) {
  if (group->nccl) {
    // All sums have ended, or another process has gone: there is nothing to wait for.
    free(guarded([&] { group->nccl->abort(); }));
  }
  delete group;
}

// Replaces a tensor by its sum over the processes.
char* ondes_group_sum(const Group* group, const at::Tensor* tensor) {
  return guarded([&] { group->start_sum(*tensor)->wait(); });
}

// Replaces a tensor by that of a process.
char* ondes_group_broadcast(const Group* group, const at::Tensor* tensor, int root) {
  return guarded([&] {
    std::vector<at::Tensor> tensors{*tensor};
    c10d::BroadcastOptions options;
    options.rootRank = root;
    group->backend(*tensor)->broadcast(tensors, options)->wait();
  });
}

// Divides a flat gradient into buckets of about `bucket_elements`. `ends` has the end of each leaf's part, in order.
std::shared_ptr<Buckets>* ondes_buckets_new(const Group* group, const at::Tensor* gradients, const at::Tensor* const* leaves,
                                            const int64_t* ends, size_t count, int64_t bucket_elements) {
  auto shared = std::make_shared<Buckets>();
  shared->group = group;
  int64_t end = count == 0 ? 0 : ends[count - 1];
  size_t leaf = count;
  while (leaf > 0) {
    Buckets::Bucket bucket;
    int64_t start = end;
    while (leaf > 0 && (bucket.leaves == 0 || end - start < bucket_elements)) {
      --leaf;
      start = leaf == 0 ? 0 : ends[leaf - 1];
      ++bucket.leaves;
      auto hook = std::make_unique<FilledHook>();
      hook->buckets = shared;
      hook->bucket = shared->buckets.size();
      torch::autograd::impl::set_post_acc_grad_hooks(*leaves[leaf], std::move(hook));
    }
    bucket.gradients = gradients->narrow(0, start, end - start);
    end = start;
    shared->buckets.push_back(std::move(bucket));
  }
  return new std::shared_ptr<Buckets>(std::move(shared));
}

void ondes_buckets_free(std::shared_ptr<Buckets>* buckets) {
  delete buckets;
}

// Lets the next backward pass start the sums.
void ondes_buckets_arm(const std::shared_ptr<Buckets>* buckets) {
  (*buckets)->arm();
}

// Starts the sums that are left, and waits for all.
char* ondes_buckets_finish(const std::shared_ptr<Buckets>* buckets) {
  return guarded([&] { (*buckets)->finish(); });
}

}

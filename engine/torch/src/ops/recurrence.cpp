// A recurrent layer of the CPU whose steps are the caller's, with gradients.

#include <torch/csrc/autograd/custom_function.h>

#include <cstdlib>
#include <cstring>
#include <optional>
#include <vector>

namespace {

using torch::autograd::variable_list;

// Values of a sequence, contiguous; `H` units, and `G` gates. The last five are of the backward pass.
struct Values {
  int64_t frames, rows, units;
  bool lstm;
  const float* weight;  // [G * H][H]
  const float* bias;    // [G * H] of a GRU, in the forward pass; else null
  float* gates;         // [frame][row][G * H]: products of the input, activated by the forward pass
  float* kept;          // [frame + 1][row][H]: c of an LSTM; [frame][row][H]: a product of the state of a GRU
  const float* h0;      // [row][H]
  float* h;             // [frame][row][H]
  const float* dy;      // [frame][row][H]
  float* d_gates;       // [frame][row][G * H]: gradients of the products of the input
  float* d_state;       // [frame][row][G * H]: and of the state; those of an LSTM are the same, so it is null
  float* dh;            // [row][H]: gradient of the last h, and then of the first
  float* dc;            // [row][H]: and of c
};

using Pass = void (*)(const Values*);

// Returns what both passes read.
Values values_of(
    const at::Tensor& gates, const at::Tensor& kept, const at::Tensor& h0, const at::Tensor& h, const at::Tensor& weight,
    bool lstm) {
  Values values{};
  values.frames = gates.size(0);
  values.rows = gates.size(1);
  values.units = h.size(2);
  values.lstm = lstm;
  values.weight = weight.data_ptr<float>();
  values.gates = gates.data_ptr<float>();
  values.kept = kept.data_ptr<float>();
  values.h0 = h0.data_ptr<float>();
  values.h = h.data_ptr<float>();
  return values;
}

struct Recurrence : torch::autograd::Function<Recurrence> {
  // `gates` are overwritten: nothing else reads them.
  static variable_list forward(
      torch::autograd::AutogradContext* context, Pass forward, Pass backward, at::Tensor gates, at::Tensor weight,
      std::optional<at::Tensor> bias, at::Tensor h0, std::optional<at::Tensor> c0) {
    const int64_t frames = gates.size(0), rows = gates.size(1), units = h0.size(1);
    const bool lstm = c0.has_value();
    auto h = at::empty({frames, rows, units}, gates.options());
    auto kept = at::empty({frames + (lstm ? 1 : 0), rows, units}, gates.options());
    if (lstm) {
      kept[0].copy_(*c0);
    }
    Values values = values_of(gates, kept, h0, h, weight, lstm);
    values.bias = bias ? bias->data_ptr<float>() : nullptr;
    forward(&values);
    context->saved_data["backward"] = reinterpret_cast<int64_t>(backward);
    context->saved_data["lstm"] = lstm;
    context->save_for_backward({gates, kept, h0, h, weight});
    variable_list outputs = {h, h[frames - 1].clone()};
    if (lstm) {
      outputs.push_back(kept[frames].clone());
    }
    return outputs;
  }

  static variable_list backward(torch::autograd::AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const auto &gates = saved[0], &kept = saved[1], &h0 = saved[2], &h = saved[3], &weight = saved[4];
    const int64_t frames = gates.size(0), rows = gates.size(1), units = h.size(2), products = gates.size(2);
    const bool lstm = context->saved_data["lstm"].toBool();
    const auto given = [&](const at::Tensor& gradient, at::IntArrayRef shape) {
      return gradient.defined() ? gradient.to(at::kFloat).contiguous() : at::zeros(shape, gates.options());
    };
    const auto dy = given(gradients[0], {frames, rows, units});
    // Copies, since they are overwritten.
    const auto dh = given(gradients[1], {rows, units}).clone();
    const auto dc = given(lstm ? gradients[2] : at::Tensor(), {rows, units}).clone();
    const auto d_gates = at::empty_like(gates);
    const auto d_state = lstm ? d_gates : at::empty_like(gates);
    Values values = values_of(gates, kept, h0, h, weight, lstm);
    values.dy = dy.data_ptr<float>();
    values.d_gates = d_gates.data_ptr<float>();
    values.d_state = lstm ? nullptr : d_state.data_ptr<float>();
    values.dh = dh.data_ptr<float>();
    values.dc = dc.data_ptr<float>();
    reinterpret_cast<Pass>(context->saved_data["backward"].toInt())(&values);
    const auto columns = d_state.view({frames * rows, products});
    const auto later = columns.narrow(0, rows, (frames - 1) * rows);
    const auto before = h.narrow(0, 0, frames - 1).view({(frames - 1) * rows, units});
    const auto d_weight = columns.narrow(0, 0, rows).t().mm(h0).addmm_(later.t(), before);
    const auto d_bias = lstm ? at::Tensor() : columns.sum(0);
    return {at::Tensor(), at::Tensor(), d_gates, d_weight, d_bias, dh, lstm ? dc : at::Tensor()};
  }
};

}  // namespace

extern "C" {

// Computes the states of a sequence from the products of its input, `[frame][row][gate * unit]`, which are overwritten. All
// tensors are contiguous. An LSTM has no `bias`, a GRU no `c0`. Writes all h, the last h, and the last c of an LSTM, new
// tensors; returns an error text, which the caller frees, or null.
char* ondes_recurrence(
    Pass forward, Pass backward, const at::Tensor* gates, const at::Tensor* weight, const at::Tensor* bias,
    const at::Tensor* h0, const at::Tensor* c0, at::Tensor** outputs) {
  try {
    const auto given = [](const at::Tensor* tensor) {
      return tensor ? std::optional<at::Tensor>(*tensor) : std::nullopt;
    };
    const auto result = Recurrence::apply(forward, backward, *gates, *weight, given(bias), *h0, given(c0));
    for (size_t i = 0; i < result.size(); ++i) {
      outputs[i] = new at::Tensor(result[i]);
    }
    return nullptr;
  } catch (const std::exception& error) {
    return strdup(error.what());
  }
}

}

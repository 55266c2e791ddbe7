// Copies to a GPU on a second stream. Only interfaces of c10 are used, which need no headers of CUDA.

#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <cstring>
#include <exception>
#include <memory>
#include <optional>
#include <vector>

extern "C" {

// Begins to copy tensors to a GPU, through pinned memory, on a stream that this thread keeps for it. `copied` becomes an event
// after the last copy. Returns an error text, which the caller frees, or null.
char* ondes_upload_start(
    int index, const at::Tensor* const* tensors, size_t count, at::Tensor** copies, c10::Event** copied) {
  try {
    const c10::Device device(c10::DeviceType::CUDA, static_cast<c10::DeviceIndex>(index));
    const c10::impl::VirtualGuardImpl gpu(c10::DeviceType::CUDA);
    thread_local std::optional<c10::Stream> stream;
    if (!stream || stream->device() != device) {
      stream = gpu.getStreamFromGlobalPool(device);
    }
    const c10::StreamGuard on_stream(*stream);
    std::vector<at::Tensor> made;
    for (size_t i = 0; i < count; ++i) {
      made.push_back(tensors[i]->pin_memory().to(device, tensors[i]->scalar_type(), true, false));
    }
    auto event = std::make_unique<c10::Event>(c10::DeviceType::CUDA);
    event->record(*stream);
    for (size_t i = 0; i < count; ++i) {
      copies[i] = new at::Tensor(std::move(made[i]));
    }
    *copied = event.release();
    return nullptr;
  } catch (const std::exception& error) {
    return strdup(error.what());
  }
}

// Lets the current stream of a GPU wait for copies, whose memory is not used again before that stream has done with it.
char* ondes_upload_finish(int index, c10::Event* copied, const at::Tensor* const* tensors, size_t count) {
  try {
    const c10::Device device(c10::DeviceType::CUDA, static_cast<c10::DeviceIndex>(index));
    const auto current = c10::impl::VirtualGuardImpl(c10::DeviceType::CUDA).getStream(device);
    copied->block(current);
    for (size_t i = 0; i < count; ++i) {
      tensors[i]->record_stream(current);
    }
    return nullptr;
  } catch (const std::exception& error) {
    return strdup(error.what());
  }
}

void ondes_upload_drop(c10::Event* copied) {
  delete copied;
}

}

#include "tools/cuda_emulator/runtime/copy.h"

#include <cstring>
#include <memory>
#include <vector>

#include "tools/cuda_emulator/runtime/captures.h"
#include "tools/cuda_emulator/runtime/device.h"
#include "tools/cuda_emulator/runtime/error.h"
#include "tools/cuda_emulator/runtime/handles.h"
#include "tools/cuda_emulator/runtime/memory_map.h"

namespace tutti::emulator {
namespace {

enum class Place { pageable, pinned, device };

std::size_t span(std::size_t pitch, const Rows& rows) {
  return rows.count == 0 ? 0 : pitch * (rows.count - 1) + rows.bytes;
}

/// Where memory is. Throws where the bytes leave the allocation that they begin in.
Place placeOf(const void* address, std::size_t bytes) {
  require(address != nullptr, cudaErrorInvalidValue);
  const auto found = memoryMap().find(address);
  if (!found) return Place::pageable;
  require(found->holds(address, bytes), cudaErrorInvalidValue);
  return found->onHost() ? Place::pinned : Place::device;
}

/// Managed and pinned memory count as either side.
void requireSide(const void* address, bool on_device) {
  const auto found = memoryMap().find(address);
  const bool fits = on_device ? found.has_value() : !found || !found->onDevice();
  require(fits, cudaErrorInvalidValue);
}

struct Places {
  Place target;
  Place source;
};

Places placesOf(const CopyRequest& request) {
  require(request.kind >= cudaMemcpyHostToHost && request.kind <= cudaMemcpyDefault,
          cudaErrorInvalidMemcpyDirection);
  require(request.target_pitch >= request.rows.bytes && request.source_pitch >= request.rows.bytes,
          cudaErrorInvalidPitchValue);
  const Places places{placeOf(request.target, span(request.target_pitch, request.rows)),
                      placeOf(request.source, span(request.source_pitch, request.rows))};
  if (request.kind == cudaMemcpyDefault) return places;
  requireSide(request.target,
              request.kind == cudaMemcpyHostToDevice || request.kind == cudaMemcpyDeviceToDevice);
  requireSide(request.source,
              request.kind == cudaMemcpyDeviceToHost || request.kind == cudaMemcpyDeviceToDevice);
  return places;
}

bool empty(const Rows& rows) { return rows.bytes == 0 || rows.count == 0; }

CopyPlan planOf(const CopyRequest& request) {
  return {static_cast<std::byte*>(request.target), static_cast<const std::byte*>(request.source),
          request.target_pitch, request.source_pitch, request.rows};
}

/// A copy whose source the caller may change as soon as we return.
Operation stagedCopy(Device& device, CopyPlan plan) {
  auto staged = std::make_shared<std::vector<std::byte>>(span(plan.source_pitch, plan.rows));
  std::memcpy(staged->data(), plan.source, staged->size());
  plan.source = staged->data();
  auto copy = copyOperation(device, plan).bind();
  return plainOperation(cudaGraphNodeTypeMemcpy, [staged, copy] { copy(); });
}

void synchronize(Stream& stream) {
  stream.device().streams().synchronize(stream);
  requireUsable();
}

void submitFill(const StreamPtr& stream, void* target, std::size_t pitch, int value, Rows rows) {
  if (empty(rows)) return;
  require(pitch >= rows.bytes, cudaErrorInvalidPitchValue);
  require(placeOf(target, span(pitch, rows)) != Place::pageable, cudaErrorInvalidValue);
  submit(stream, fillOperation(stream->device(), static_cast<std::byte*>(target), pitch, value, rows));
}

}  // namespace

CopyRequest plainCopy(void* target, const void* source, std::size_t bytes, cudaMemcpyKind kind) {
  return {target, source, bytes, bytes, {bytes, 1}, kind};
}

void copyAsync(const CopyRequest& request, cudaStream_t handle) {
  const auto stream = streamOf(handle);
  if (empty(request.rows)) return;
  const auto places = placesOf(request);
  auto& device = stream->device();
  if (captures().add(stream, copyOperation(device, planOf(request)))) return;
  const bool staged = places.source == Place::pageable && places.target != Place::pageable;
  submit(stream, staged ? stagedCopy(device, planOf(request)) : copyOperation(device, planOf(request)));
  if (places.target == Place::pageable) synchronize(*stream);
}

void copyNow(const CopyRequest& request) {
  const auto& legacy = currentDevice().streams().legacy();
  captures().requireNoneBlocking(legacy->device());
  captures().requireSafe();
  if (empty(request.rows)) return;
  const auto places = placesOf(request);
  submit(legacy, copyOperation(legacy->device(), planOf(request)));
  if (places.target != Place::device || places.source != Place::device) synchronize(*legacy);
}

void copyBetween(const CopyRequest& request, Device& target, Device& source) {
  const auto& own = currentDevice().streams().legacy();
  const auto follow = [](const StreamPtr& later, const StreamPtr& earlier) {
    if (later == earlier) return;
    const auto event = std::make_shared<Event>(earlier->device(), cudaEventDisableTiming);
    submit(earlier, recordOperation(event));
    submit(later, waitOperation(event));
  };
  for (auto* const device : {&target, &source}) follow(own, device->streams().legacy());
  copyNow(request);
  for (auto* const device : {&target, &source}) follow(device->streams().legacy(), own);
}

void fillAsync(void* target, std::size_t pitch, int value, Rows rows, cudaStream_t stream) {
  submitFill(streamOf(stream), target, pitch, value, rows);
}

void fillNow(void* target, std::size_t pitch, int value, Rows rows) {
  const auto& legacy = currentDevice().streams().legacy();
  captures().requireNoneBlocking(legacy->device());
  submitFill(legacy, target, pitch, value, rows);
}

Operation copyNode(const CopyRequest& request) {
  require(!empty(request.rows), cudaErrorInvalidValue);
  placesOf(request);
  return copyOperation(currentDevice(), planOf(request));
}

Operation fillNode(void* target, std::size_t pitch, unsigned value, std::size_t unit_bytes, Rows rows) {
  require(unit_bytes == 1 || unit_bytes == 2 || unit_bytes == 4, cudaErrorInvalidValue);
  require(!empty(rows) && (rows.count == 1 || pitch >= rows.bytes), cudaErrorInvalidValue);
  require(placeOf(target, span(pitch, rows)) != Place::pageable, cudaErrorInvalidValue);
  auto& device = currentDevice();
  auto* const bytes = static_cast<std::byte*>(target);
  if (unit_bytes == 1) return fillOperation(device, bytes, pitch, static_cast<int>(value), rows);
  return plainOperation(cudaGraphNodeTypeMemset, [&device, bytes, pitch, value, unit_bytes, rows] {
    if (device.fault() != cudaSuccess) return;
    for (std::size_t row = 0; row < rows.count; ++row) {
      // The low bytes of `value`, as devices are little-endian.
      for (std::size_t at = 0; at < rows.bytes; at += unit_bytes)
        std::memcpy(bytes + row * pitch + at, &value, unit_bytes);
    }
  });
}

}  // namespace tutti::emulator

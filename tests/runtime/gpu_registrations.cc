// Buffers that peers work on in place.
#include <chrono>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/harness/ranks.h"
#include "tests/runtime/gpu_device.h"
#include "tests/runtime/gpu_scenarios.h"

namespace tutti::test {
namespace {

void* registered(const Comm& comm, const GpuArray<float>& data) {
  void* registration = nullptr;
  check(ncclCommRegister(comm.handle(), data.data(), data.size() * sizeof(float), &registration));
  return registration;
}

void reduceOnes(Comm& comm, const GpuArray<float>& data, const char* what) {
  data.set(filled(data.size(), 1.0F));
  comm.allReduce(data.data(), data.data(), data.size(), ncclSum);
  requireAll(data, static_cast<float>(comm.size()), what);
}

/// Reduces until peers read in place.
void reduceUntilMapped(Comm& comm, const GpuArray<float>& data) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  // All ranks leave the loop after the same round: they agree by what they reduce.
  const GpuArray<float> done(filled(1, 0.0F));
  for (bool is_seen = false; !is_seen;) {
    reduceOnes(comm, data, "registered");
    const bool reads = comm.statistics().payload_read_bytes > 0;
    done.set({reads || std::chrono::steady_clock::now() > end ? 1.0F : 0.0F});
    comm.allReduce(done.data(), done.data(), 1, ncclMin);
    is_seen = done.get()[0] != 0;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  require(comm.statistics().payload_read_bytes > 0, "nothing was read in place");
}

constexpr std::size_t kCount = 200'000;

}  // namespace

void registerBuffers(Comm& comm) {
  const GpuArray<float> data(kCount);
  void* refused = nullptr;
  expectRefusal(ncclCommRegister(comm.handle(), data.data() + 1, kCount * sizeof(float), &refused),
                "go beyond their allocation, which is 800000 bytes at ");
  require(refused == nullptr, "a handle of what was refused");
  void* registration = registered(comm, data);
  reduceUntilMapped(comm, data);
  check(ncclCommDeregister(comm.handle(), registration));
  reduceOnes(comm, data, "deregistered");
}

void freeRegistered(Comm& comm) {
  void* registration = nullptr;
  const float* place = nullptr;
  {
    const GpuArray<float> data(kCount);
    place = data.data();
    registration = registered(comm, data);
    reduceUntilMapped(comm, data);
  }
  const GpuArray<float> data(kCount);
  require(data.data() == place, "other memory did not get the address");
  for (int i = 0; i < 3; ++i) reduceOnes(comm, data, "in the place of what was registered");
  check(ncclCommDeregister(comm.handle(), registration));
  registration = registered(comm, data);
  reduceOnes(comm, data, "registered again");
  check(ncclCommDeregister(comm.handle(), registration));
}

}  // namespace tutti::test

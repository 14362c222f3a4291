// A rank as its thread drives it.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "tools/device/device.h"
#include "tutti/tutti.h"

namespace tutti::device {

/// `call(i)` for each of `count` ranks of this thread; in one group where they are several, because none is
/// done without the others. Nothing is carried out when a call throws.
template <class Call>
void inOneGroup(std::size_t count, const Call& call) {
  if (count == 1) return call(0);
  Group group;
  for (std::size_t i = 0; i < count; ++i) call(i);
  group.end();
}

/// A rank's communicator, the device that it works on, and the stream that its operations go to. Move only.
class Seat {
 public:
  /// With a stream of its own, or the NULL stream.
  Seat(std::unique_ptr<Device> device, bool own_stream);
  Seat(Seat&& other) noexcept;
  Seat& operator=(Seat&&) = delete;
  Seat(const Seat&) = delete;
  Seat& operator=(const Seat&) = delete;
  ~Seat();

  /// Takes the communicator over.
  void join(ncclComm_t comm) { comm_ = Comm(comm); }

  ncclComm_t comm() const { return comm_.handle(); }
  int rank() const { return comm_.rank(); }
  tuttiStatistics_t statistics() const { return comm_.statistics(); }
  Device& device() const { return *device_; }
  cudaStream_t stream() const { return stream_; }

  /// Throws the communicator's error, where it has one.
  void requireGood() const;
  /// Waits for what is queued on the stream. Throws the communicator's error, where it has one.
  void finish() const;

 private:
  std::unique_ptr<Device> device_;
  cudaStream_t stream_;
  Comm comm_{nullptr};
};

/// The ranks of one thread.
struct SeatPlan {
  ncclUniqueId id;
  int nranks = 1;
  int first_rank = 0;
  int count = 1;         ///< ranks of this thread, with consecutive numbers
  int first_device = 0;  ///< as Devices::open counts
  bool own_streams = true;
};

/// Opens their devices and joins the communicator with all of them. Throws Error.
std::vector<Seat> takeSeats(const Devices& devices, const SeatPlan& plan);

}  // namespace tutti::device

#include "tools/device/exchange.h"

namespace tutti::device {

Exchange::Exchange(std::span<const Seat> seats) : seats_(seats), staging_(seats.size()) {
  check(ncclCommCount(seats.front().comm(), &size_));
}

std::vector<std::byte> Exchange::gatherBytes(std::span<const std::byte> own) {
  const std::size_t bytes = own.size() / seats_.size();
  const std::size_t all_bytes = bytes * static_cast<std::size_t>(size_);
  for (std::size_t i = 0; i < seats_.size(); ++i) {
    Device& device = seats_[i].device();
    if (staging_[i].bytes() < bytes + all_bytes) staging_[i] = Memory(device, bytes + all_bytes);
    device.copyIn(staging_[i].data(), own.data() + i * bytes, bytes, seats_[i].stream());
  }
  inOneGroup(seats_.size(), [&](std::size_t i) {
    std::byte* send = staging_[i].data();
    check(ncclAllGather(send, send + bytes, bytes, ncclInt8, seats_[i].comm(), seats_[i].stream()));
  });
  for (const Seat& seat : seats_) seat.finish();
  std::vector<std::byte> all(all_bytes);
  seats_[0].device().copyOut(all.data(), staging_[0].data() + bytes, all_bytes, seats_[0].stream());
  return all;
}

void Exchange::barrier() { gatherBytes(std::vector<std::byte>(seats_.size())); }

}  // namespace tutti::device

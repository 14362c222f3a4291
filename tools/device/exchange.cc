#include "tools/device/exchange.h"

namespace tutti::device {

void finish(const LocalRank& rank) {
  rank.device->synchronize(rank.stream);
  ncclResult_t state = ncclSuccess;
  check(ncclCommGetAsyncError(rank.comm, &state));
  check(state);
}

Exchange::Exchange(std::span<const LocalRank> ranks) : ranks_(ranks), staging_(ranks.size()) {
  check(ncclCommCount(ranks.front().comm, &size_));
}

std::vector<std::byte> Exchange::gatherBytes(std::span<const std::byte> own) {
  const std::size_t bytes = own.size() / ranks_.size();
  const std::size_t all_bytes = bytes * static_cast<std::size_t>(size_);
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    const LocalRank& rank = ranks_[i];
    if (staging_[i].bytes() < bytes + all_bytes) staging_[i] = Memory(*rank.device, bytes + all_bytes);
    rank.device->copyIn(staging_[i].data(), own.data() + i * bytes, bytes, rank.stream);
  }
  inOneGroup(ranks_.size(), [&](std::size_t i) {
    std::byte* send = staging_[i].data();
    check(ncclAllGather(send, send + bytes, bytes, ncclInt8, ranks_[i].comm, ranks_[i].stream));
  });
  for (const LocalRank& rank : ranks_) finish(rank);
  std::vector<std::byte> all(all_bytes);
  ranks_[0].device->copyOut(all.data(), staging_[0].data() + bytes, all_bytes, ranks_[0].stream);
  return all;
}

void Exchange::barrier() { gatherBytes(std::vector<std::byte>(ranks_.size())); }

}  // namespace tutti::device

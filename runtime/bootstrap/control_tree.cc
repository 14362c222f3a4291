#include "runtime/bootstrap/control_tree.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "runtime/bootstrap/dial.h"

namespace tutti {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kDelivery{1000};  ///< for the last words to a neighbour that does not read

}  // namespace

std::string TreeChannels::describe(int rank) const {
  if (rank == kRendezvous) return "the rendezvous";
  const auto index = static_cast<std::size_t>(rank);
  return index < table_.size() ? describeRank(rank, table_[index]) : fmt::format("rank {}", rank);
}

void TreeChannels::add(int rank, SecureChannel channel) {
  channels_.push_back({.rank = rank, .channel = std::move(channel), .inbox = {}, .later = {}});
}

void TreeChannels::remove(int rank) {
  std::erase_if(channels_, [rank](const Channel& channel) { return channel.rank == rank; });
}

const TreeChannels::Channel* TreeChannels::find(int rank) const {
  const auto found = std::ranges::find(channels_, rank, &Channel::rank);
  return found == channels_.end() ? nullptr : &*found;
}

TreeChannels::Channel* TreeChannels::find(int rank) {
  return const_cast<Channel*>(std::as_const(*this).find(rank));
}

void TreeChannels::addTo(std::vector<pollfd>& fds) const {
  for (const Channel& channel : channels_) {
    if (channel.ended) continue;
    const auto events = static_cast<short>(POLLIN | (channel.channel.wantsToWrite() ? POLLOUT : 0));
    fds.push_back({channel.channel.fd(), events, 0});
  }
}

bool TreeChannels::wantsToWrite() const {
  return std::ranges::any_of(
      channels_, [](const Channel& channel) { return !channel.ended && channel.channel.wantsToWrite(); });
}

void TreeChannels::sayLost(const Channel& from) const {
  const std::string& problem = from.channel.problem();
  if (from.rank == kRendezvous) {
    throw BootstrapError(ncclRemoteError,
                         fmt::format("lost the rendezvous{}. Did the process that called "
                                     "ncclGetUniqueId end?",
                                     problem.empty() ? "" : ": " + problem),
                         true);
  }
  throw BootstrapError(ncclRemoteError,
                       fmt::format("{} left while the communicator was being made{}", describe(from.rank),
                                   problem.empty() ? "" : ": " + problem),
                       true);
}

/// Keeps what has arrived apart from what comes after it: once a message lies in the inbox, the rest stays in
/// the channel, for it may be meant for who has the channel next. Not so when the neighbour has ended: then
/// the rest tells why, or that it was complete, and has left since.
void TreeChannels::read(Channel& from) {
  while (from.inbox.empty() || from.ended) {
    auto received = from.channel.receive();
    if (!received) return;
    if (!received->empty() && received->front() >= kFirstLaterType) {
      from.left = true;
      from.later.push_back(std::move(*received));
      continue;
    }
    switch (typeOf(*received)) {
      case MessageType::failed:
        throw readFailed(payloadOf(*received));
      case MessageType::leave:
        from.left = true;
        break;
      default:
        from.inbox.push_back(std::move(*received));
    }
  }
}

void TreeChannels::pump() {
  for (Channel& channel : channels_) {
    channel.ended = channel.ended || !channel.channel.pump();
    read(channel);
  }
  // Only now: one neighbour's end may be the consequence of what another one tells.
  for (const Channel& channel : channels_) {
    if (channel.ended && !channel.left) sayLost(channel);
  }
}

std::optional<Bytes> TreeChannels::take(int rank) {
  Channel* channel = find(rank);
  read(*channel);  // it may have arrived behind another one
  if (channel->inbox.empty()) return std::nullopt;
  Bytes message = std::move(channel->inbox.front());
  channel->inbox.pop_front();
  return message;
}

void TreeChannels::requirePresent(int rank) const {
  const Channel* channel = find(rank);
  if (channel->left && channel->inbox.empty()) sayLost(*channel);
}

void TreeChannels::write() noexcept {
  for (Channel& channel : channels_) channel.ended = channel.ended || !channel.channel.pump();
}

void TreeChannels::deliver() noexcept {
  const auto end = Clock::now() + kDelivery;
  while (wantsToWrite() && Clock::now() < end) {
    std::vector<pollfd> fds;
    addTo(fds);
    pollFor(fds, milliseconds(10));
    write();
  }
}

void TreeChannels::flood(const Error& error) noexcept {
  if (std::exchange(is_failed_, true)) return;
  const Bytes last_words = failedMessage(error);
  for (Channel& channel : channels_) {
    if (!channel.ended) channel.channel.send(last_words);
  }
  deliver();
  for (const Channel& channel : channels_) ::shutdown(channel.channel.fd(), SHUT_WR);
}

void TreeChannels::leave() noexcept {
  if (!is_failed_) {
    for (Channel& channel : channels_) {
      if (!channel.ended) channel.channel.send(message(MessageType::leave));
    }
    deliver();
  }
  channels_.clear();
}

ControlTree TreeChannels::release(int rank) {
  ControlTree tree;
  for (Channel& channel : channels_) {
    Neighbour neighbour{channel.rank, std::move(channel.channel), std::move(channel.later)};
    if (channel.rank == treeParent(rank)) {
      tree.parent = std::move(neighbour);
    } else {
      tree.children.push_back(std::move(neighbour));
    }
  }
  std::ranges::sort(tree.children, {}, &Neighbour::rank);
  channels_.clear();
  return tree;
}

}  // namespace tutti

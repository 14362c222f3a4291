#include "runtime/bootstrap/reception.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <thread>
#include <utility>

namespace tutti {
namespace {

using std::chrono::milliseconds;

constexpr auto kProofTime = std::chrono::seconds(5);   ///< a connection must have proved itself within
constexpr auto kGuestTime = std::chrono::seconds(60);  ///< and spoken within
constexpr auto kLeastTime = milliseconds(1000);        ///< nobody is dropped sooner, however many wait

}  // namespace

Reception::Reception(UniqueFd listener, const Secret& secret, std::size_t most)
    : listener_(std::move(listener)), secret_(secret), most_(most) {}

std::list<Reception::Stranger>::const_iterator Reception::oldestUnproven() const {
  return std::ranges::find_if(strangers_, [](const Stranger& s) { return !s.channel.established(); });
}

std::size_t Reception::unproven() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(strangers_, [](const Stranger& s) { return !s.channel.established(); }));
}

bool Reception::hasRoom() const {
  return unproven() < most_ || Clock::now() - oldestUnproven()->since >= kLeastTime;
}

void Reception::addTo(std::vector<pollfd>& fds) const {
  if (listener_ && hasRoom()) fds.push_back({listener_.get(), POLLIN, 0});
  for (const Stranger& stranger : strangers_) {
    const auto events = static_cast<short>(POLLIN | (stranger.channel.wantsToWrite() ? POLLOUT : 0));
    fds.push_back({stranger.channel.fd(), events, 0});
  }
}

void Reception::acceptAll() {
  while (listener_ && hasRoom()) {
    UniqueFd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket) {
      if (errno == ECONNABORTED || errno == EINTR) continue;
      // Out of descriptors: the backlog keeps the connection until one is free.
      if (errno == EMFILE || errno == ENFILE) std::this_thread::sleep_for(milliseconds(10));
      return;
    }
    while (unproven() >= most_) strangers_.erase(oldestUnproven());
    strangers_.push_back(
        {SecureChannel(std::move(socket), secret_, SecureChannel::Role::server), Clock::now()});
  }
}

std::vector<Guest> Reception::attend() {
  acceptAll();
  std::vector<Guest> guests;
  for (auto stranger = strangers_.begin(); stranger != strangers_.end();) {
    const bool is_open = stranger->channel.pump();
    auto greeting = stranger->channel.receive();
    const bool is_late =
        Clock::now() - stranger->since >= (stranger->channel.established() ? kGuestTime : kProofTime);
    if (greeting) guests.push_back({std::move(stranger->channel), std::move(*greeting)});
    stranger = greeting || !is_open || is_late ? strangers_.erase(stranger) : std::next(stranger);
  }
  return guests;
}

UniqueFd Reception::takeListener() {
  strangers_.clear();
  return std::move(listener_);
}

}  // namespace tutti

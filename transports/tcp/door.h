// Who dials: strangers until they have proved that they know the communicator's secret and said which link
// they are for. Until then they cost a bounded number of sockets and disturb nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/core/unique_fd.h"
#include "transports/secure_channel.h"
#include "transports/tcp/handshake.h"
#include "transports/tcp/link_context.h"
#include "transports/tcp/receiving_link.h"

namespace tutti {

/// Used by the thread that drives the network, only.
class Door {
 public:
  /// The link that a greeting is for; nullptr where there is none.
  using Find = std::function<ReceivingLink*(const Hello&)>;

  /// `listener` listens; may be empty. Tokens: its own is `token`, those of strangers follow.
  Door(const LinkContext& context, UniqueFd listener, std::uint64_t token, Find find);

  /// The socket under a token has news.
  void wake(std::uint64_t token);
  bool hasNews() const { return has_news_; }
  /// Somebody is expected to say more.
  bool isBusy() const { return has_news_ || !strangers_.empty(); }
  void tend(Clock::time_point now);
  void close();

 private:
  struct Stranger {
    std::uint64_t token;
    Clock::time_point since;
    SecureChannel channel;
    bool has_news = true;
    ReceivingLink* link = nullptr;  ///< once it has been answered
    std::uint64_t epoch = 0;
  };

  void acceptAll(Clock::time_point now);
  bool makeRoom(Clock::time_point now);
  bool advance(Stranger& stranger, Clock::time_point now);

  const LinkContext& context_;
  UniqueFd listener_;
  std::uint64_t token_;
  std::uint64_t next_token_;
  Find find_;
  bool has_news_ = true;
  bool is_knocking_ = true;                           ///< somebody may wait at the listener
  std::vector<std::unique_ptr<Stranger>> strangers_;  ///< the oldest first
};

}  // namespace tutti

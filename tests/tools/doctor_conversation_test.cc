// What two doctors say to each other arrives, whoever leaves first.
#include "tools/doctor/peer/conversation.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "transports/listener.h"
#include "transports/socket_address.h"
#include "transports/tcp/sockets.h"

namespace tutti::doctor {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

struct Sockets {
  UniqueFd listeners;
  UniqueFd callers;
};

/// Of one connection over the loopback.
Sockets connected() {
  NetAddress address = parseNumericHost("127.0.0.1").value();
  const UniqueFd listener = listenOn(address, {}, "test");
  int error = 0;
  Sockets sockets{.listeners = {}, .callers = startConnect(address, &error)};
  const auto deadline = Clock::now() + seconds(10);
  while (!sockets.listeners && pollOnce(listener.get(), POLLIN, deadline))
    sockets.listeners = acceptFrom(listener.get());
  return sockets;
}

struct Doctors {
  std::unique_ptr<Conversation> listener;
  std::unique_ptr<Conversation> caller;
};

Doctors met() {
  Sockets sockets = connected();
  Doctors doctors;
  std::jthread caller([&] {
    doctors.caller = std::make_unique<Conversation>(std::move(sockets.callers), "token",
                                                    SecureChannel::Role::client, seconds(10));
  });
  doctors.listener = std::make_unique<Conversation>(std::move(sockets.listeners), "token",
                                                    SecureChannel::Role::server, seconds(10));
  return doctors;
}

TEST(DoctorConversation, TheLastWordsOfWhoHasLeftAreHeard) {
  Doctors doctors = met();
  doctors.caller->send({{"bye", true}});
  doctors.caller.reset();
  doctors.listener->send({{"bye", true}});
  EXPECT_TRUE(doctors.listener->receive().at("bye").get<bool>());
}

TEST(DoctorConversation, WhoLeavesWithoutAWordIsTold) {
  Doctors doctors = met();
  doctors.caller.reset();
  doctors.listener->send({{"bye", true}});
  try {
    doctors.listener->receive();
    FAIL() << "it received something";
  } catch (const BrokenOff& broken) {
    const std::string words = broken.what();
    EXPECT_FALSE(words.empty());
    EXPECT_EQ(words.find("was silent"), std::string::npos) << "it waited for who has left: " << words;
  }
}

TEST(DoctorConversation, WhoIsSilentIsToldAfterTheLimit) {
  const Doctors doctors = met();
  try {
    doctors.listener->receive(milliseconds(50));
    FAIL() << "it received something";
  } catch (const BrokenOff& broken) {
    EXPECT_STREQ(broken.what(), "the other doctor was silent for 0.05 s");
  }
}

}  // namespace
}  // namespace tutti::doctor

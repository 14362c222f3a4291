// Ids that every rank makes from an address: who is admitted, and who opens the rendezvous.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "runtime/bootstrap/bootstrap.h"
#include "runtime/bootstrap/id_source.h"
#include "runtime/process.h"
#include "tests/harness/free_port.h"
#include "tests/harness/ranks.h"
#include "tests/harness/scratch_directory.h"
#include "transports/listener.h"
#include "transports/socket_address.h"
#include "tutti/error.h"

namespace tutti {
namespace {

using std::chrono::seconds;

class AgreedIds : public testing::Test {
 protected:
  AgreedIds() {
    Process::instance();  // starts libsodium
    NetAddress address = parseNumericHost("127.0.0.1").value();
    address.port = static_cast<std::uint16_t>(test::freePort());
    where_ = toText(address);
  }

  std::string writeSecret(const std::string& name, const std::string& text, mode_t mode = 0600) {
    std::string path = directory_.path() + "/" + name;
    std::ofstream(path, std::ios::binary) << text;
    ::chmod(path.c_str(), mode);
    return path;
  }

  UniqueId idOf(const NetworkSettings& network) {
    return decode(agreedUniqueId(where_, "NCCL_COMM_ID", network, log_));
  }

  std::string refusal(const NetworkSettings& network) {
    try {
      idOf(network);
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  }

  static void attend(const UniqueId& id, int nranks, int rank, seconds limit = seconds(30)) {
    Bootstrap bootstrap(id, nranks, rank, {}, std::chrono::steady_clock::now() + limit);
    bootstrap.allGather(rank);
    bootstrap.leave();
  }

  test::ScratchDirectory directory_;
  std::string where_;
  Log log_{LogSettings{}};
};

TEST_F(AgreedIds, RanksMeetByAddressAndSecret) {
  NetworkSettings network{};
  network.secret_file = writeSecret("secret", "sixteen bytes or more");
  // Rank 0 comes last, and several communicators follow each other under the same address.
  const auto errors = test::runThreads(4, [&](int rank) {
    if (rank == 0) std::this_thread::sleep_for(std::chrono::milliseconds(300));
    for (int round = 0; round < 5; ++round) attend(idOf(network), 4, rank);
  });
  EXPECT_EQ(errors, test::noErrors(4));
}

TEST_F(AgreedIds, SameTextSameId) {
  NetworkSettings network{};
  network.secret_file = writeSecret("secret", "sixteen bytes or more");
  const UniqueId first = idOf(network);
  EXPECT_EQ(first.secret, idOf(network).secret);
  EXPECT_EQ(toText(first.address), where_);
  EXPECT_TRUE(first.is_agreed);
  network.secret_file = writeSecret("other", "sixteen bytes or less");
  EXPECT_NE(first.secret, idOf(network).secret);
}

TEST_F(AgreedIds, AnotherSecretIsNotLetIn) {
  NetworkSettings right{};
  right.secret_file = writeSecret("right", "the right secret of all ranks");
  NetworkSettings wrong{};
  wrong.secret_file = writeSecret("wrong", "a wrong secret of this rank only");
  const auto errors = test::runThreads(3, [&](int thread) {
    if (thread == 2) return attend(idOf(wrong), 2, 1, seconds(4));  // gives up; the two others meet
    if (thread == 1) std::this_thread::sleep_for(std::chrono::milliseconds(500));
    attend(idOf(right), 2, thread);
  });
  EXPECT_EQ(errors[0], "");
  EXPECT_EQ(errors[1], "");
  EXPECT_NE(errors[2], "");
}

TEST_F(AgreedIds, WithoutASecretOnlyWhenAllowed) {
  NetworkSettings network{};
  const std::string words = refusal(network);
  EXPECT_NE(words.find("TUTTI_SECRET_FILE"), std::string::npos) << words;
  EXPECT_NE(words.find("TUTTI_INSECURE=1"), std::string::npos) << words;
  network.is_insecure = true;
  const std::string path = directory_.path() + "/log";
  Log log({.level = LogLevel::warn, .file = path, .timestamp_format = {}});
  const UniqueId id = decode(agreedUniqueId(where_, "NCCL_COMM_ID", network, log));
  std::ifstream file(path);
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  EXPECT_NE(text.find("WARN TUTTI_INSECURE=1: whoever reaches " + where_), std::string::npos) << text;
  EXPECT_EQ(test::runThreads(2, [&](int rank) { attend(id, 2, rank); }), test::noErrors(2));
}

TEST_F(AgreedIds, SecretFilesAreChecked) {
  const auto says = [&](const std::string& path, const std::string& words) {
    NetworkSettings network{};
    network.secret_file = path;
    const std::string error = refusal(network);
    EXPECT_NE(error.find("TUTTI_SECRET_FILE=" + path), std::string::npos) << error;
    EXPECT_NE(error.find(words), std::string::npos) << error;
  };
  says("/no/such/file", "No such file");
  says(writeSecret("short", "fifteen bytes.."), "expected 16 to 65536 bytes");
  says(writeSecret("long", std::string(65537, 'x')), "expected 16 to 65536 bytes");
  says(writeSecret("group", "sixteen bytes or more", 0640), "mode 0640");
  says(writeSecret("others", "sixteen bytes or more", 0604), "chmod 600");
}

TEST_F(AgreedIds, WithoutRank0TheDeadlineEndsIt) {
  NetworkSettings network{};
  network.is_insecure = true;
  const UniqueId id = idOf(network);
  const auto errors = test::runThreads(1, [&](int) { attend(id, 2, 1, seconds(1)); });
  EXPECT_NE(errors[0].find("rank 1 (pid "), std::string::npos) << errors[0];
  EXPECT_NE(errors[0].find("cannot reach rank 0 at " + where_), std::string::npos) << errors[0];
}

TEST_F(AgreedIds, APortInUseIsNamed) {
  NetworkSettings network{};
  network.is_insecure = true;
  const UniqueId id = idOf(network);
  NetAddress address = id.address;
  const UniqueFd taken = listenOn(address, {}, "");
  const auto errors = test::runThreads(1, [&](int) { attend(id, 2, 0); });
  EXPECT_NE(errors[0].find("port " + std::to_string(id.address.port)), std::string::npos) << errors[0];
  EXPECT_NE(errors[0].find("NCCL_COMM_ID"), std::string::npos) << errors[0];
}

}  // namespace
}  // namespace tutti

// One process per GPU, as a launcher starts it: RANK, WORLD_SIZE and LOCAL_RANK in the environment; the id
// goes by a file or over TCP.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

#include "tests/nccl_programs/check.h"

inline int numberFrom(const char* name) {
  const char* text = getenv(name);
  REQUIRE(text != nullptr, "%s is not set", name);
  return atoi(text);
}

/// Rank 0 makes the id and renames it into place; the others wait for it.
inline ncclUniqueId idByFile(int rank, const std::string& path) {
  ncclUniqueId id;
  if (rank == 0) {
    NCCL_CHECK(ncclGetUniqueId(&id));
    FILE* file = fopen((path + ".part").c_str(), "wb");
    REQUIRE(file != nullptr && fwrite(&id, sizeof id, 1, file) == 1 && fclose(file) == 0, "%s", path.c_str());
    REQUIRE(rename((path + ".part").c_str(), path.c_str()) == 0, "%s", path.c_str());
    return id;
  }
  FILE* file = nullptr;
  for (int tries = 0; file == nullptr && tries < 6000; ++tries) {
    file = fopen(path.c_str(), "rb");
    if (file == nullptr) usleep(10000);
  }
  REQUIRE(file != nullptr && fread(&id, sizeof id, 1, file) == 1, "no id in %s", path.c_str());
  fclose(file);
  return id;
}

/// Rank 0 listens on the loopback interface and hands the id to whoever calls.
inline ncclUniqueId idByTcp(int rank, int nranks, int port) {
  ncclUniqueId id;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  if (rank == 0) {
    NCCL_CHECK(ncclGetUniqueId(&id));
    const int on = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    REQUIRE(bind(fd, generic, sizeof address) == 0 && listen(fd, nranks) == 0, "port %d", port);
    for (int peer = 1; peer < nranks; ++peer) {
      const int caller = accept(fd, nullptr, nullptr);
      REQUIRE(send(caller, &id, sizeof id, 0) == ssize_t(sizeof id), "sending the id");
      close(caller);
    }
  } else {
    for (int tries = 0; connect(fd, generic, sizeof address) != 0; ++tries) {
      REQUIRE(tries < 3000, "nobody at port %d", port);
      close(fd);
      usleep(10000);
      fd = socket(AF_INET, SOCK_STREAM, 0);
    }
    REQUIRE(recv(fd, &id, sizeof id, MSG_WAITALL) == ssize_t(sizeof id), "receiving the id");
  }
  close(fd);
  return id;
}

struct Process {
  int rank;
  int nranks;
  ncclComm_t comm;
  cudaStream_t stream;
};

inline Process joinByFile(const std::string& path) {
  Process self{};
  self.rank = numberFrom("RANK");
  self.nranks = numberFrom("WORLD_SIZE");
  CUDA_CHECK(cudaSetDevice(numberFrom("LOCAL_RANK")));
  const ncclUniqueId id = idByFile(self.rank, path);
  NCCL_CHECK(ncclCommInitRank(&self.comm, self.nranks, id, self.rank));
  CUDA_CHECK(cudaStreamCreateWithFlags(&self.stream, cudaStreamNonBlocking));
  return self;
}

inline void leave(const Process& self) {
  CUDA_CHECK(cudaStreamDestroy(self.stream));
  NCCL_CHECK(ncclCommDestroy(self.comm));
}

// A second process of this program, for trials of what two can do with each other.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "runtime/core/unique_fd.h"

namespace tutti::doctor {

/// Forked when it is made, so this process must have one thread then. Killed when destroyed.
class SecondProcess {
 public:
  /// Bytes to and from the other process; false where it ended, or 10 s have passed.
  class Pipe {
   public:
    Pipe(UniqueFd in, UniqueFd out) : in_(std::move(in)), out_(std::move(out)) {}
    bool send(std::span<const std::byte> bytes) const;
    bool receive(std::span<std::byte> bytes) const;

    template <class T>
    bool send(const T& value) const {
      return send(std::as_bytes(std::span(&value, 1)));
    }
    template <class T>
    bool receive(T& value) const {
      return receive(std::as_writable_bytes(std::span(&value, 1)));
    }

   private:
    UniqueFd in_;
    UniqueFd out_;
  };

  /// `work` is what the other process does; then it ends. Throws std::system_error.
  explicit SecondProcess(const std::function<void(const Pipe&)>& work);
  SecondProcess(const SecondProcess&) = delete;
  SecondProcess& operator=(const SecondProcess&) = delete;
  ~SecondProcess();

  int pid() const { return pid_; }
  const Pipe& pipe() const { return *pipe_; }

 private:
  int pid_ = -1;
  std::optional<Pipe> pipe_;
};

}  // namespace tutti::doctor

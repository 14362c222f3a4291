// What a rank of gpu_rank_program does with graphs, groups and registered buffers. Throws where something is
// wrong.
#pragma once

#include <string>

#include "tutti/tutti.h"

namespace tutti::test {

/// A captured all-reduce and exchange, replayed, among eager work on another stream.
void replay(Comm& comm, int times);
/// The same with nothing eager, and pauses.
void replayAlone(Comm& comm, int times);
/// Two ranks as threads end their communicator while replays are queued that cannot have started.
void destroyWhileQueued();

/// Two communicators on one stream; a scalar of the GPU; captured work beside other work.
void useGroups(Comm& comm);

/// Two ranks as threads destroy a communicator while a kernel of another one waits for one of them.
void destroyBesideAKernel();
/// Nothing stays of many communicators of two ranks as threads.
void makeAndDestroyMany(int count);

/// The last rank resets its GPU, and finds that out by `call`; the other ranks hear of it.
void resetDevice(Comm& comm, const std::string& call);
/// The same with two ranks as threads, by each call in turn.
void resetDeviceInThreads();
/// While other threads, of the library and of the program, look at the communicator.
void resetWhileOthersLook();

/// Registered buffers are worked on in place, once the peers have mapped them.
void registerBuffers(Comm& comm);
/// A registered buffer is freed, and another gets its address.
void freeRegistered(Comm& comm);

}  // namespace tutti::test

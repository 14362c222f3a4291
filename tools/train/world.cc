#include "tools/train/world.h"

#include "tools/device/choice.h"

namespace tutti::train {

World::World(const device::Devices& devices, const tuttiLaunch_t& launch)
    : rank_(static_cast<std::size_t>(launch.rank)),
      seats_(device::takeSeats(devices, {.id = launch.id,
                                         .nranks = launch.nranks,
                                         .first_rank = launch.rank,
                                         .first_device = device::localRank()})),
      exchange_(seats_) {}

}  // namespace tutti::train

#pragma once

#include <cstdint>
#include <span>
#include <string_view>

/// Begin here: proto/wire holds what all programs share about messages: limits, their checks
/// (validate.hpp), errors (status.hpp) and transfers of files (chunks.hpp). This file holds every
/// limit of the system, one a line, with its reason. A value above its limit is refused with the
/// field, the value and the limit; it is never cut to fit.
namespace quasi::limits {

using Count = std::uint64_t;

// Limits of calls.
inline constexpr Count kMessageBytes =
    4U << 20;  // gRPC receive limit: a full batch of ordinary specs fits, a flood does not.
inline constexpr Count kMetadataBytes = 16U
                                        << 10;  // Trailers with 4 KiB of details, and a reserve.
inline constexpr Count kErrorDetailsBytes =
    4U << 10;                                  // Fits into the trailers that proxies allow (8 KiB).
inline constexpr Count kPageSize = 1'000;      // One page stays well under a message.
inline constexpr Count kDefaultPageSize = 50;  // One screen of a terminal.
inline constexpr Count kIdsPerCall = 1'000;    // Equal to the jobs per call.
inline constexpr Count kTokenBytes = 512;      // Tokens of this program have under 100 bytes.

// Limits of a job.
inline constexpr Count kJobsPerCall = 1'000;  // One transaction of a few tens of milliseconds.
inline constexpr Count kSweepJobs = 10'000;   // One transaction of under a second.
inline constexpr Count kSweepAxes = 8;        // More than a table can show.
inline constexpr Count kAxisKeys = 16;
inline constexpr Count kStopRules = 8;      // Each is a row that the success of a job reads.
inline constexpr Count kFigureBytes = 128;  // Equal to the limit of names.
inline constexpr Count kSpecBytes = 256U
                                    << 10;  // Specs are rows of the database; large data are blobs.
inline constexpr Count kNameBytes = 128;    // One line of a table.
inline constexpr Count kLabels = 32;        // Each is an indexed row.
inline constexpr Count kLabelKeyBytes = 63;     // Equal to the limit of DNS labels.
inline constexpr Count kLabelValueBytes = 128;  // Equal to the limit of names.
inline constexpr Count kInputs = 64;            // Each is a file to fetch and a reference to keep.
inline constexpr Count kDependencies = 256;     // Each is a row that the end of a job reads.
inline constexpr Count kSlotComponents = 8;     // Depth of a path in the input directory.
inline constexpr Count kSlotBytes = 1'024;      // Well under PATH_MAX with the attempt's directory.
inline constexpr Count kFileNameBytes =
    128;  // Components of slots and of artefacts' names; NAME_MAX is 255.
inline constexpr Count kSettings = 256;  // A deck is the better form for more.
inline constexpr Count kSettingKeyBytes = 128;
inline constexpr Count kSettingValueBytes = 4U << 10;
inline constexpr Count kExports = 16;  // More formats than any kind has.
inline constexpr Count kGpus = 16;     // The largest host there is.
inline constexpr Count kRanks = 16;    // One per GPU.
inline constexpr Count kCpus = 1'024;  // Beyond any host.
inline constexpr Count kMemoryBytes = Count{64}
                                      << 40;  // 64 TiB: beyond any host; catches wrong units.
inline constexpr Count kMaxAttempts = 10;     // A job that failed ten times fails again.
inline constexpr Count kDefaultMaxAttempts = 3;
inline constexpr Count kUncountedGrants =
    20;  // Grants beyond max_attempts: drains and restarts are not endless.
inline constexpr Count kCheckpointsKept = 16;
inline constexpr Count kDefaultCheckpointsKept = 2;  // The newest may prove unreadable.
inline constexpr Count kPriority = 100;              // −100 … 100.
inline constexpr Count kDurationSeconds =
    30 * 86'400;  // 30 days: longer than any queue's patience.
inline constexpr Count kTestEmitBytes = Count{4} << 30;  // A 2 GiB fetch is tested.
inline constexpr Count kTestSteps = 1'000'000;
inline constexpr Count kFirstYearSeconds = 0;             // 1970-01-01T00:00:00Z
inline constexpr Count kLastYearSeconds = 7'258'118'400;  // 2200-01-01T00:00:00Z

// Limits of files.
inline constexpr Count kBlobBytes = Count{64} << 30;  // A dielectric matrix of a large cell.
inline constexpr Count kUploadChunkBytes = 1U << 20;  // Bounds the memory of one stream.
inline constexpr Count kStreamWindowBytes =
    4U << 20;  // Bytes of a stream on their way: 400 MB/s over a link of 10 ms.
// Size of HTTP/2 frames that either side accepts. A chunk arrives in one frame: in frames of 16
// KiB, the default, each is a wait of its own.
inline constexpr Count kFrameBytes = 512U << 10;
inline constexpr Count kChunkBytes =
    256U << 10;  // Size of chunks that this program sends: 1.8 GB/s on loopback.
inline constexpr Count kUploadSyncBytes = 64U
                                          << 20;  // Bytes that a broken upload may have to repeat.
inline constexpr Count kUploads = 64;             // Streams at once; each holds about a chunk.
inline constexpr Count kDigestsPerCall = 1'000;
inline constexpr Count kArtifacts = 4'096;  // Per job: text files of some 200 temperatures; 2 MiB
                                            // of a message with the longest names.
inline constexpr Count kArtifactNameBytes = 256;    // A folder or two, and a name.
inline constexpr Count kSummaryBytes = 256U << 10;  // Equal to the limit of specs.
inline constexpr Count kMediaTypeBytes = 127;       // RFC 6838.

// Limits of attempts.
inline constexpr Count kLogBytes = 64U << 20;  // Per attempt; then a marker line.
inline constexpr Count kLogChunkBytes = 1U << 20;
inline constexpr Count kMetrics = 16;  // Figures beside a progress bar.
inline constexpr Count kMetricNameBytes = 64;
inline constexpr Count kPhaseBytes = 128;
inline constexpr Count kFailureMessageBytes = 4U << 10;
inline constexpr Count kWallsBytes = 1'024;  // One line with a reason for each open wall.
inline constexpr Count kReasonBytes = 512;   // One sentence of a user.

// Limits of workers and watchers.
inline constexpr Count kDevices = 64;  // Per worker.
inline constexpr Count kSlots = 256;   // Per worker, all devices.
inline constexpr Count kKinds = 16;
inline constexpr Count kAttemptsPerHeartbeat = 1'024;  // Slots, and the attempts being salvaged.
inline constexpr Count kAcquireWaitSeconds = 20;       // Under the idle time-outs of NATs.
inline constexpr Count kWatches = 512;                 // Number of streams at once.

// Limits of principals.
inline constexpr Count kPrincipalNameBytes = 63;             // Equal to the limit of DNS labels.
inline constexpr Count kTokenSeconds = Count{366} * 86'400;  // A forgotten token ends by itself.
inline constexpr Count kAuthorizationBytes = 512;            // Tokens have under 100 bytes.
inline constexpr Count kTokensShown = 100;                   // Of one principal.

struct Limit {
  std::string_view name;
  Count value;
};

/// The limits that GetCapabilities reports.
std::span<const Limit> published();

}  // namespace quasi::limits

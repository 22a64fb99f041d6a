#include "proto/wire/limits.hpp"

namespace quasi::limits {

std::span<const Limit> published() {
  static constexpr Limit kAll[] = {
      {"message_bytes", kMessageBytes},
      {"spec_bytes", kSpecBytes},
      {"jobs_per_call", kJobsPerCall},
      {"sweep_jobs", kSweepJobs},
      {"ids_per_call", kIdsPerCall},
      {"page_size", kPageSize},
      {"name_bytes", kNameBytes},
      {"labels", kLabels},
      {"label_value_bytes", kLabelValueBytes},
      {"inputs", kInputs},
      {"dependencies", kDependencies},
      {"slot_bytes", kSlotBytes},
      {"settings", kSettings},
      {"setting_value_bytes", kSettingValueBytes},
      {"exports", kExports},
      {"gpus", kGpus},
      {"ranks", kRanks},
      {"max_attempts", kMaxAttempts},
      {"priority", kPriority},
      {"duration_seconds", kDurationSeconds},
      {"blob_bytes", kBlobBytes},
      {"upload_chunk_bytes", kUploadChunkBytes},
      {"uploads", kUploads},
      {"digests_per_call", kDigestsPerCall},
      {"artifacts", kArtifacts},
      {"summary_bytes", kSummaryBytes},
      {"log_bytes", kLogBytes},
      {"metrics", kMetrics},
      {"watches", kWatches},
  };
  return kAll;
}

}  // namespace quasi::limits

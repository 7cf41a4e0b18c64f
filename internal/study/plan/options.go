package plan

import (
	"fmt"
	"log/slog"
	"runtime"
	"time"

	"github.com/noether-ml/noether/engine/ort"
	"github.com/noether-ml/noether/internal/blas"
	"github.com/noether-ml/noether/internal/features"
	"github.com/noether-ml/noether/internal/fetch"
	"github.com/noether-ml/noether/internal/study/internal/telemetry"
	"github.com/noether-ml/noether/scores"
)

// Options are the settings of a run that scores do not depend on.
type Options struct {
	Runtime *ort.Runtime
	Threads int           // threads of the engine, ONNX Runtime; 0: all cores
	Device  string        // "" or "cpu", "cuda", ...
	BLAS    *blas.Backend // matrix library, whose number of threads is set during the run; may be nil
	Shard   Shard         // the shard (part) of the samples to run; zero: all samples
	// Only names the models whose cells to run; nil: all. A comparison runs with its first model.
	// Such a run writes study.yaml, cells and states; Merge writes the rest.
	Only         []string
	Complete     bool                // with a Shard: at the end, finish the cells of which the folder then has all shards
	Replace      bool                // remove the run of another study from the folder; if it is not set, such a run is an error
	SaveInterval time.Duration       // minimum time between saves of unfinished work; 0: a minute
	SaveFraction float64             // maximum fraction of the time that saving may take; 0: a twentieth
	Progress     func(Progress)      // called after each batch; may be nil
	FailFast     bool                // stop at the first failure
	AllowEmpty   bool                // a plan without cells is no error
	RoundHalf    bool                // half-precision files: round activations too, see ort.NetworkOptions
	Strict       bool                // an unreadable sample is an error
	Downloads    *fetch.Cache        // cache of files that the study names by URL; nil: the user's default cache
	FeatureCache *features.Store     // activations that runs share; nil: the user's default cache
	Warn         func(string)        // called with warnings that belong to no score; may be nil
	Log          *slog.Logger        // receives the log of the run; may be nil
	Stats        *telemetry.Stats    // updated during the run; may be nil
	Memory       int64               // memory limit of the process in bytes; 0: not known. Passes and batches are sized to fit
	Free         int64               // free memory of the machine in bytes; 0: not known. Accumulators may hold a quarter of it if the study does not set memory
	Record       scores.EngineRecord // description of the engine, for run.json
	Version      string              // of this program, for run.json
}

// Progress counts samples of forward passes: once for the clean input and once for each view, in
// each pass.
type Progress struct {
	Done, Total         int64
	Pass, Passes        int // each procedure counts as a pass
	Samples, AllSamples int // samples that the current pass has read, of the number that it reads
	Scored, ToScore     int // tasks (layers of cells) that the current pass has scored, of their number; both 0 while it reads samples
	Model, Data         string
	Note                string // status text of a procedure, such as the distance reached
}

// Workers returns the number of parallel goroutines: Threads, or GOMAXPROCS if that is 0.
func (o *Options) Workers() int {
	if o.Threads > 0 {
		return o.Threads
	}
	return runtime.GOMAXPROCS(0)
}

// Warnf formats a warning and passes it to Warn, if that is set.
func (o *Options) Warnf(format string, args ...any) {
	if o.Warn != nil {
		o.Warn(fmt.Sprintf(format, args...))
	}
}

// ShareBLAS divides the threads of the run between goroutines that use the BLAS in parallel.
func (o *Options) ShareBLAS(workers int) {
	if o.BLAS != nil && workers > 0 {
		o.BLAS.SetThreads(max(1, o.Workers()/workers))
	}
}

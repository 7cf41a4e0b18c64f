package plan

import (
	"fmt"
	"log/slog"
	"runtime"
	"time"

	"github.com/noether-ml/noether/features"
	"github.com/noether-ml/noether/linalg"
	"github.com/noether-ml/noether/ort"
	"github.com/noether-ml/noether/scores"
	"github.com/noether-ml/noether/study/internal/telemetry"
)

// Options are what a run needs besides the study and what its scores do not depend on.
type Options struct {
	Runtime         *ort.Runtime
	Threads         int                 // of the engine; 0: all cores
	Device          string              // "" or "cpu", "cuda", ...
	BLAS            *linalg.Backend     // whose threads a run sets as it needs them; may be nil
	Part            Part                // the share of the samples to run; zero: all
	Only            []string            // models whose cells to run, the others being somebody else's; nil: all. A pair of models is the first one's. Such a run writes study.yaml, cells and states, and leaves the rest to Merge
	Complete        bool                // with a Part: finish the cells whose other parts are in the folder already, and leave less to Merge
	Every           time.Duration       // between saves of unfinished work; 0: a minute
	Progress        func(Progress)      // called after each batch; may be nil
	FailFast        bool                // end at the first failure, instead of going on with the rest
	Representations *features.Store     // what layers make of samples, kept from run to run; nil: the user's, see represent.Default
	Warn            func(string)        // called with what a user should know and no score carries; may be nil
	Log             *slog.Logger        // told what happens; may be nil
	Stats           *telemetry.Stats    // filled while the run goes on; may be nil
	Memory          int64               // bytes that the process may hold before it is killed; 0: not known. Passes and batches are made to fit; scores do not depend on it
	Record          scores.EngineRecord // what computes the scores, for run.json
	Version         string              // of this program, for run.json
}

// Progress is how far a run has come, in samples that the engine has run or will run.
type Progress struct {
	Done, Total  int64
	Pass, Passes int // procedures counted as passes
	Model, Data  string
	Note         string // what a procedure has to say of itself, such as the distance that it has reached
}

// Cores is how many goroutines work side by side.
func (o *Options) Cores() int {
	if o.Threads > 0 {
		return o.Threads
	}
	return runtime.GOMAXPROCS(0)
}

func (o *Options) Warnf(format string, args ...any) {
	if o.Warn != nil {
		o.Warn(fmt.Sprintf(format, args...))
	}
}

// ShareBLAS divides the cores between so many that use the BLAS side by side.
func (o *Options) ShareBLAS(workers int) {
	if o.BLAS != nil && workers > 0 {
		o.BLAS.SetThreads(max(1, o.Cores()/workers))
	}
}

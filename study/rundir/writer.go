package rundir

import (
	"time"

	"github.com/noether-ml/noether/internal/machine"
	"github.com/noether-ml/noether/scores"
	"github.com/noether-ml/noether/study/internal/telemetry"
	"github.com/noether-ml/noether/study/plan"
)

// A Writer keeps what a run finds in a run folder.
type Writer struct {
	Plan     *plan.Plan
	Folder   Folder
	Options  plan.Options
	Log      telemetry.Logger
	Stats    *telemetry.Stats
	peak     int64 // most bytes held in an earlier pass
	failures plan.FailureLog
	started  time.Time
	missing  []scores.Missing // what a merge could not complete
	states   stateFiles       // of the folders that are merged; nil where none is
	dirs     []string         // the folders that are merged
}

// NewWriter starts to keep a run of a plan in a folder, with the failures of the plan.
func NewWriter(p *plan.Plan, folder Folder, o plan.Options) (*Writer, error) {
	r := &Writer{Plan: p, Folder: folder, Options: o, Log: telemetry.NewLogger(o.Log), Stats: p.Stats, failures: p.Failures, started: time.Now().UTC()}
	r.Stats.Cells.Store(int64(len(p.Cells)))
	r.Stats.Failures.Store(int64(len(p.Failures.Failed)))
	machine.ResetPeak()
	return r, r.openFailures()
}

// StartPass starts to measure the memory of a pass.
func (r *Writer) StartPass() {
	r.peak = max(r.peak, machine.PeakMemory())
	machine.ResetPeak()
}

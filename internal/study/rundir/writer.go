package rundir

import (
	"sync"
	"time"

	"github.com/noether-ml/noether/internal/machine"
	"github.com/noether-ml/noether/internal/study/internal/telemetry"
	"github.com/noether-ml/noether/internal/study/plan"
	"github.com/noether-ml/noether/scores"
)

// A Writer writes the results of a run into a run folder: the scores of its cells (a measure for
// one model, data set, transformation value and trial each), or the states of shards (running sums
// over parts of the samples). A trial is a repetition of all random draws. A merge combines shards.
type Writer struct {
	Plan        *plan.Plan
	Folder      Folder
	Options     plan.Options
	Log         telemetry.Logger
	Stats       *telemetry.Stats
	earlierPeak int64           // peak memory of earlier passes (readings of the samples), in bytes
	failures    plan.FailureLog // of models, data sets and cells
	started     time.Time
	missing     []scores.Missing // cells that a merge could not complete, since states of shards are missing; by model
	states      filesByKey       // state files by cell; nil if they were not listed

	failedBefore filesByKey // failures that were in the folder at the start

	mu       sync.Mutex                // guards records, peak and peakRead
	records  map[*plan.Cell]cellRecord // of finished cells; see ForgetRecords; nil: none are kept
	peak     int64                     // peak memory of the process at peakRead, in bytes
	peakRead time.Time

	before     *scores.Record // in run.json before this run, nil if there was none
	recordsSum string         // checksum of the files of the cells, see scores.Record.Records

	mergedDirs  []string     // folders that a merge reads; nil unless merging
	sampleTable *sampleTable // of a merge; nil if Finish reads the per-sample values from the folder

	imageless []string // why data sets have no contact sheet (image of several samples), if the study asks for images

	described map[*plan.Data]map[int]plan.Described // samples whose values are kept, by index; see describeSamples
}

// NewWriter returns a Writer for the run of a plan, and records the failures of the plan in the
// folder.
func NewWriter(p *plan.Plan, folder Folder, o plan.Options) (*Writer, error) {
	r := &Writer{Plan: p, Folder: folder, Options: o, Log: telemetry.NewLogger(o.Log), Stats: p.Stats, failures: p.Failures, started: time.Now().UTC(),
		described: map[*plan.Data]map[int]plan.Described{}}
	r.Stats.Cells.Store(int64(len(p.Cells)))
	r.Stats.Failures.Store(int64(len(p.Failures.Failed)))
	machine.ResetPeak()
	return r, r.openFailures()
}

// StartPass begins to measure the peak memory of a pass.
func (r *Writer) StartPass() {
	r.earlierPeak = max(r.earlierPeak, machine.PeakMemory())
	machine.ResetPeak()
}

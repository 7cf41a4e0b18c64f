package results

import (
	"errors"
	"sync"
	"time"

	"github.com/noether-ml/noether/internal/machine"
	"github.com/noether-ml/noether/internal/study/internal/telemetry"
	"github.com/noether-ml/noether/internal/study/plan"
	"github.com/noether-ml/noether/internal/study/store"
	"github.com/noether-ml/noether/scores"
)

// A Writer writes the results of a run into a run folder: the records of its cells, or the states
// of shards. It keeps the records that it has read or written if they are needed again soon: a
// study may have 100,000 of them, and reading them takes most of the time of a merge.
type Writer struct {
	Plan        *plan.Plan
	Folder      Folder
	Options     plan.Options
	Log         telemetry.Logger
	Stats       *telemetry.Stats
	earlierPeak int64           // peak memory of earlier passes, in bytes
	failures    plan.FailureLog // of models, data sets and cells
	started     time.Time
	missing     []scores.Missing    // cells that a merge could not complete, since states of shards are missing; by model
	states      map[string][]string // state files by cell; nil if they were not listed

	failedBefore map[string][]string // failures that were in the folder at the start

	mu       sync.Mutex                // guards records, refreshed, peak and peakRead
	records  map[*plan.Cell]cellRecord // of finished cells; see ForgetRecords; nil: none are kept
	peak     int64                     // peak memory of the process at peakRead, in bytes
	peakRead time.Time

	before     *scores.Record // in run.json before this run, nil if there was none
	recordsSum string         // checksum of the files of the cells, see scores.Record.Records

	merged      []Folder     // that a merge reads, the first is the run's own; nil unless merging
	sampleTable *sampleTable // of a merge; nil if Finish reads the per-sample values from the folder

	units map[*plan.Cell][]store.Part // of procedures, until their records are written

	refreshed time.Time // when the stores were last read

	archive *archive             // that pictures are written to; nil: they are files
	maps    map[string][]picture // feature maps that are kept for the archive, by key of the cell

	imageless []string // why data sets have no contact sheet, if the study asks for images

	described map[*plan.Data]map[int]plan.Described // samples whose values are kept, by index; see describeSamples
	grouped   map[string][]scores.Grouping          // by name of the data; see groupings
	mistakes  *mistakes                             // set by Finish

	// Decode draws predictions on the sheets of failures; nil: none are drawn.
	Decode Decoder

	agreed bool // there are agreementRows
	broken bool // there are breakingRows
}

// NewWriter returns a Writer for the run of a plan, and records the failures of the plan in the
// folder.
func NewWriter(p *plan.Plan, folder Folder, o plan.Options) (*Writer, error) {
	r := &Writer{Plan: p, Folder: folder.ownLogs(o), Options: o, Log: telemetry.NewLogger(o.Log), Stats: p.Stats, failures: p.Failures, started: time.Now().UTC(),
		described: map[*plan.Data]map[int]plan.Described{}, grouped: map[string][]scores.Grouping{}, units: map[*plan.Cell][]store.Part{}}
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

// refresh reads what other processes have added to the stores, at most ten times a second.
func (r *Writer) refresh() error {
	r.mu.Lock()
	due := time.Since(r.refreshed) > time.Second/10
	if due {
		r.refreshed = time.Now()
	}
	r.mu.Unlock()
	if !due {
		return nil
	}
	return r.Folder.load()
}

// Close drops the states of finished cells, and ends the use of the folder's logs.
func (r *Writer) Close() error {
	_ = r.Folder.load() // an error leaves states behind that are of no use
	for _, c := range r.Plan.Cells {
		if r.Folder.HasCell(c) {
			r.dropStates(c)
		}
	}
	err := r.Folder.states.Sweep()
	for _, f := range r.merged[min(1, len(r.merged)):] {
		f.close()
	}
	return errors.Join(err, r.Folder.close())
}

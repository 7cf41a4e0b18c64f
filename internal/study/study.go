package study

import (
	"context"
	"time"

	"github.com/noether-ml/noether/internal/catalog"
	"github.com/noether-ml/noether/internal/pooling"
	_ "github.com/noether-ml/noether/internal/simd/avx" // the vector instructions that measures use
	"github.com/noether-ml/noether/internal/study/internal/telemetry"
	"github.com/noether-ml/noether/internal/study/plan"
	"github.com/noether-ml/noether/internal/study/results"
	"github.com/noether-ml/noether/internal/study/run"
	"github.com/noether-ml/noether/internal/study/spec"
	"github.com/noether-ml/noether/scores"
)

// The types of arguments and results. Each is documented in the package that defines it.
type (
	Study      = spec.Study         // a study file, which says what is measured
	Plan       = plan.Plan          // a study with its models and data opened
	Options    = plan.Options       // settings of a run that scores do not depend on
	Shard      = plan.Shard         // one of several parts of the samples, about equal in size
	Progress   = plan.Progress      // the progress of a run
	Stats      = telemetry.Stats    // counters of a run
	Source     = run.Source         // a model on a data set, whose activations Extract reads
	Sink       = run.Sink           // takes the activations of Extract
	Cost       = plan.Cost          // estimated time and memory of a plan
	Work       = plan.ModelWork     // remaining work for one model
	Result     = results.Result     // the scores and the record (run.json) of a run
	Finding    = results.Finding    // a problem with a file of a run folder
	Failures   = results.Failures   // the error of a run in which some cells, models or data failed
	Incomplete = results.Incomplete // the error of a merge that lacks shards
)

// Load reads a study file. vars are looked up before the environment for ${NAME} in the file.
func Load(path string, vars map[string]string) (*Study, error) { return catalog.Load(path, vars) }

// Parse reads the text of a study file. Relative paths in it are relative to the folder of path,
// and errors name path. vars are as for Load.
func Parse(path string, data []byte, vars map[string]string) (*Study, error) {
	return catalog.Parse(path, data, vars)
}

// ParseShard parses a shard of the samples such as "3/16".
func ParseShard(text string) (Shard, error) { return plan.ParseShard(text) }

// NewPlan opens the models and the data of a study and lists its cells. See plan.New.
func NewPlan(ctx context.Context, s *Study, o Options) (*Plan, error) { return plan.New(ctx, s, o) }

// Run fills the run folder dir (of results) with the cells of a study that it lacks. See run.Run.
func Run(ctx context.Context, s *Study, dir string, o Options) (*Result, error) {
	return run.Run(ctx, s, dir, o)
}

// Merge completes a run, in the first folder, from the states that its shards left in the folders.
// See results.Merge.
func Merge(ctx context.Context, s *Study, dirs []string, o Options) (*Result, error) {
	return results.Merge(ctx, s, dirs, o)
}

// Check examines every file of a run folder and, with fix, repairs what it can. See results.Check.
func Check(ctx context.Context, dir string, fix bool, o Options) ([]Finding, error) {
	return results.Check(ctx, dir, fix, o)
}

// Prepare makes the run folder and writes the resolved study into it: the study with variables
// filled in, absolute paths and hashes. Before runs of some of the models only (Options.Only), it
// must be called.
func Prepare(p *Plan, dir string, o Options) error { return results.Prepare(p, dir, o) }

// Extract gives the activations of a plan's models on its data to sinks; see run.Extract.
func Extract(ctx context.Context, p *Plan, o Options, pool pooling.Kind, open func(Source) (Sink, error)) error {
	return run.Extract(ctx, p, o, pool, open)
}

// EngineTime returns the estimated time of a plan's forward passes; see run.EngineTime.
func EngineTime(ctx context.Context, p *Plan, o Options) (time.Duration, error) {
	return run.EngineTime(ctx, p, o)
}

// Estimate returns the estimated time and memory of a plan, for each model and data set. It times a
// few batches; see run.Estimate. Cells that the run folder dir already holds are left out; dir may
// be empty.
func Estimate(ctx context.Context, p *Plan, dir string, o Options) ([]Cost, error) {
	if dir != "" {
		if err := results.Resume(p, dir, o); err != nil {
			return nil, err
		}
	}
	return run.Estimate(ctx, p, o)
}

// Remaining returns the remaining work of each model of a plan, in the order of the study. It runs
// nothing. Cells that the run folder dir already holds are left out; dir may be empty.
func Remaining(p *Plan, dir string, o Options) ([]Work, error) {
	if dir != "" {
		if err := results.Resume(p, dir, o); err != nil {
			return nil, err
		}
	}
	return p.Work(o), nil
}

// ReadResult reads the scores and the record of a run folder.
func ReadResult(dir string) (*Result, error) { return results.ReadResult(dir) }

// ReadCells reads the cells of a run folder, and those of means over values and trials that are
// derived from them. Their scores keep the replicates (values without one group of samples, from
// which the jackknife computes intervals) that intervals of differences need; the rows of
// ReadResult lack these.
func ReadCells(dir string) ([]scores.Cell, scores.Record, error) { return results.ReadCells(dir) }

// PageSource returns a checksum of the files that the report of a finished run is made from.
func PageSource(dir string) (string, error) { return results.PageSource(dir) }

// Unmerged returns the number of state files in a run folder that Merge has not merged yet, each of
// one cell and one shard.
func Unmerged(dir string) (int, error) { return results.Unmerged(dir) }

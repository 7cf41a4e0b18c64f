package study

import (
	"context"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/noether-ml/noether/internal/machine"
	"github.com/noether-ml/noether/scores"
)

// A stage is a kind of work whose time is taken.
type stage int

const (
	opening      stage = iota // reading models and data, planning
	decoding                  // reading and decoding samples, on a goroutine beside the engine
	transforming              // moving samples, on the same goroutine
	waiting                   // of the engine's goroutine for samples: what decoding and transforming cost the run
	engine
	measuring // feeding accumulators
	scoring   // from accumulators to scores
	saving    // states, records and tables
	merging   // of the states of shards
	procedures
	stages
)

var stageNames = [stages]string{"open", "decode", "transform", "wait", "engine", "measure", "score", "save", "merge", "procedure"}

// Stats are what a run counts, for whoever watches it. The methods may be called while the run goes on.
type Stats struct {
	started             time.Time
	took                [stages]atomic.Int64 // nanoseconds
	total, done         atomic.Int64         // samples of the engine, as in Progress
	cells, finished     atomic.Int64
	failures            atomic.Int64
	decoded, unreadable atomic.Int64 // samples
}

// A Snapshot is the state of a run's Stats at a moment.
type Snapshot struct {
	Stages              []scores.Stage
	Total, Done         int64 // samples that the engine runs
	Cells, Finished     int64
	Failures            int64
	Decoded, Unreadable int64 // samples read, and those that could not be read
}

// Snapshot reads the counters.
func (s *Stats) Snapshot() Snapshot {
	out := Snapshot{Total: s.total.Load(), Done: s.done.Load(), Cells: s.cells.Load(), Finished: s.finished.Load(),
		Failures: s.failures.Load(), Decoded: s.decoded.Load(), Unreadable: s.unreadable.Load()}
	for i, name := range stageNames {
		out.Stages = append(out.Stages, scores.Stage{Name: name, Seconds: time.Duration(s.took[i].Load()).Seconds()})
	}
	return out
}

// during starts the clock of a stage and returns what stops it.
func (s *Stats) during(at stage) (stop func()) {
	start := time.Now()
	return func() { s.took[at].Add(int64(time.Since(start))) }
}

// add adds what has passed since start to a stage and returns the time now.
func (s *Stats) add(at stage, start time.Time) time.Time {
	now := time.Now()
	s.took[at].Add(int64(now.Sub(start)))
	return now
}

// times are the stages that took any time, for run.json.
func (s *Stats) times() []scores.Stage {
	var out []scores.Stage
	for _, one := range s.Snapshot().Stages {
		if one.Seconds > 0 {
			out = append(out, one)
		}
	}
	return out
}

// resources is what the run has used, for run.json.
func (r *runner) resources() scores.Resources {
	return scores.Resources{Seconds: time.Since(r.stats.started).Seconds(), Stages: r.stats.times(), PeakMemory: max(r.peak, machine.PeakMemory())}
}

// span starts a span of a trace; it costs nothing where nobody traces.
func span(ctx context.Context, name string, about ...attribute.KeyValue) (context.Context, trace.Span) {
	return otel.Tracer("github.com/noether-ml/noether/study").Start(ctx, name, trace.WithAttributes(about...))
}

// end ends a span, with the error that its work ended with.
func end(s trace.Span, err error) {
	if err != nil {
		s.RecordError(err)
		s.SetStatus(codes.Error, err.Error())
	}
	s.End()
}

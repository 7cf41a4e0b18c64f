// Package telemetry counts what a run does, times its stages, traces it and keeps the last lines of
// its log. A cell, which a run counts, is one measure of one model on one data set, under one
// transformation value, in one trial (a repetition of all random draws). The engine is ONNX
// Runtime.
package telemetry

import (
	"context"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/noether-ml/noether/scores"
)

// A Stage is a kind of work whose time is measured.
type Stage int

const (
	Opening      Stage = iota // opening models and data, and planning
	Decoding                  // reading and decoding samples, on a goroutine beside the engine
	Transforming              // transforming samples, on the same goroutine
	Waiting                   // time that the engine's goroutine waits for samples
	Engine                    // forward passes
	Measuring                 // updating accumulators, the running sums of measures, by batches
	Scoring                   // computing scores from accumulators
	Saving                    // writing accumulators (states), records and tables
	Merging                   // merging the states of shards, parts of the samples
	Procedures                // running procedures: measures that work in steps, such as training a probe
	stages                    // number of stages
)

var stageNames = [stages]string{"open", "decode", "transform", "wait", "engine", "measure", "score", "save", "merge", "procedure"}

// Stats are the counters of a run. The methods may be called while the run is in progress.
type Stats struct {
	Started             time.Time
	nanoseconds         [stages]atomic.Int64 // time of each stage
	Total, Done         atomic.Int64         // samples in all forward passes, and those that have run, as in plan.Progress
	Cells, Finished     atomic.Int64         // number of cells, and of finished ones
	Failures            atomic.Int64         // number of models, data sets and cells that failed
	Decoded, Unreadable atomic.Int64         // samples that were read, and those of them that could not be decoded
}

// A Snapshot is the state of a run's Stats at a moment.
type Snapshot struct {
	Stages              []scores.Stage
	Total, Done         int64 // as in Stats
	Cells, Finished     int64 // as in Stats
	Failures            int64 // as in Stats
	Decoded, Unreadable int64 // as in Stats
}

// Snapshot reads the counters.
func (s *Stats) Snapshot() Snapshot {
	out := Snapshot{Total: s.Total.Load(), Done: s.Done.Load(), Cells: s.Cells.Load(), Finished: s.Finished.Load(),
		Failures: s.Failures.Load(), Decoded: s.Decoded.Load(), Unreadable: s.Unreadable.Load()}
	for i, name := range stageNames {
		out.Stages = append(out.Stages, scores.Stage{Name: name, Seconds: time.Duration(s.nanoseconds[i].Load()).Seconds()})
	}
	return out
}

// During starts timing a stage and returns the function that stops it.
func (s *Stats) During(at Stage) (stop func()) {
	start := time.Now()
	return func() { s.nanoseconds[at].Add(int64(time.Since(start))) }
}

// Add adds the time since start to a stage and returns the current time.
func (s *Stats) Add(at Stage, start time.Time) time.Time {
	now := time.Now()
	s.nanoseconds[at].Add(int64(now.Sub(start)))
	return now
}

// Times returns the stages with a time above zero, for run.json.
func (s *Stats) Times() []scores.Stage {
	var out []scores.Stage
	for _, stage := range s.Snapshot().Stages {
		if stage.Seconds > 0 {
			out = append(out, stage)
		}
	}
	return out
}

// Span starts a span of the OpenTelemetry trace of a run, with attributes about it.
func Span(ctx context.Context, name string, about ...attribute.KeyValue) (context.Context, trace.Span) {
	return otel.Tracer("github.com/noether-ml/noether/internal/study").Start(ctx, name, trace.WithAttributes(about...))
}

// EndSpan ends a span, with the error that its work ended with.
func EndSpan(s trace.Span, err error) {
	if err != nil {
		s.RecordError(err)
		s.SetStatus(codes.Error, err.Error())
	}
	s.End()
}

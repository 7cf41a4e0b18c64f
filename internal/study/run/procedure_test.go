package run_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/noether-ml/noether/internal/catalog"
	"github.com/noether-ml/noether/internal/procedure"
	"github.com/noether-ml/noether/internal/state"
	"github.com/noether-ml/noether/internal/study"
	"github.com/noether-ml/noether/internal/study/results"
	"github.com/noether-ml/noether/internal/study/spec"
	"github.com/noether-ml/noether/internal/study/studytest"
	"github.com/noether-ml/noether/internal/testmodel"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/scores"
)

// brightness is a simple procedure: a measure that reads samples itself, in steps, with
// checkpoints (saved progress). A job is one run of it, for a model A or a pair A and B, in one
// trial (a repetition of all random draws). Its score mean is the mean value of A's images plus the
// number of the trial; for a pair, difference is that of the mean values of A's and B's images. It
// saves a checkpoint before each sample.
type brightness struct {
	pair   bool                      // it compares two models
	images int                       // number of samples; 0: all
	fail   error                     // if not nil, what a run returns
	resume func(at int)              // if not nil, called with the number of the sample where a job starts or resumes
	share  func(a string, trial int) // if not nil, called once for all jobs of the same A and trial; see saveShared
}

// saveShared calls share and saves the name of model A in the checkpoint that all jobs of the same
// A and trial share, unless an earlier job has done so.
func (b *brightness) saveShared(j *procedure.Job) error {
	shared := j.Shared("name of A")
	raw, err := read(shared)
	if err != nil || string(raw) == j.A.Name {
		return err
	}
	b.share(j.A.Name, j.Key.Trial)
	return shared.Save(writing([]byte(j.A.Name)))
}

// read returns the content of a checkpoint, or nil if there is none.
func read(c state.Checkpoint) ([]byte, error) {
	f, err := c.Load()
	if err != nil || f == nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(f)
}

// writing returns a function that writes raw.
func writing(raw []byte) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := w.Write(raw)
		return err
	}
}

func (*brightness) Name() string                   { return "brightness" }
func (*brightness) Descriptor() measure.Descriptor { return measure.Descriptor{Name: "brightness"} }
func (*brightness) Version() int                   { return 1 }
func (*brightness) Settings() any                  { return nil }

func (b *brightness) Needs() procedure.Needs {
	return procedure.Needs{Pair: b.pair, Directional: true, Layers: measure.PairPenultimate, Samples: b.images}
}

func (b *brightness) Skip(j *procedure.Job) string {
	if j.Data.Len() < 3 {
		return "it needs three samples"
	}
	return ""
}

func (b *brightness) Work(j *procedure.Job) int64 { return int64(j.Data.Len()) }

type brightnessState struct {
	Seen int
	Sum  [2]float64
}

func (b *brightness) Run(ctx context.Context, j *procedure.Job) ([]measure.PairScore, error) {
	if b.fail != nil {
		return nil, b.fail
	}
	var s brightnessState
	raw, err := read(j.Checkpoint)
	if err == nil && raw != nil {
		err = json.Unmarshal(raw, &s)
	}
	if err != nil {
		return nil, err
	}
	if b.resume != nil {
		b.resume(s.Seen)
	}
	if b.share != nil {
		if err := b.saveShared(j); err != nil {
			return nil, err
		}
	}
	for ; s.Seen < j.Data.Len(); s.Seen++ {
		raw, err := json.Marshal(s)
		if err != nil {
			return nil, err
		}
		if err := j.Checkpoint.Save(writing(raw)); err != nil {
			return nil, err
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		for i, subject := range []procedure.Subject{j.A, j.B} {
			if subject.Model == nil {
				continue
			}
			samples, err := j.Read(ctx, []int{s.Seen}, subject.Model.Frame())
			if err != nil {
				return nil, err
			}
			var sum float64
			for _, v := range samples[0].Input.Data {
				sum += float64(v)
			}
			s.Sum[i] += sum / float64(len(samples[0].Input.Data))
		}
		j.Progress(int64(s.Seen+1), fmt.Sprintf("at %d", s.Seen))
	}
	n := float64(s.Seen)
	whole := measure.PairScore{A: measure.WholeModel, B: measure.WholeModel, Score: measure.Plain("mean", s.Sum[0]/n+float64(j.Key.Trial), s.Seen)}
	if !b.pair {
		return []measure.PairScore{whole}, nil
	}
	layers := measure.PairScore{A: j.Pairs[0][0], B: j.Pairs[0][1], Score: measure.Plain("difference", (s.Sum[0]-s.Sum[1])/n, s.Seen)}
	return []measure.PairScore{whole, layers}, nil
}

// procedureStudy returns the study pairsText (between_test.go) of the models one, two and big in
// two trials, with a procedure as its only measure: on every model, or on two pairs of models. Its
// data are 150 images. correlationEntry serves to parse the setting between, and returns an entry
// of a measure with it; writePairs writes the models.
func procedureStudy(t *testing.T, dir string, b *brightness) *study.Study {
	t.Helper()
	s := studytest.Parse(t, dir, pairsText+"trials: 2\n")
	s.Measures = []spec.MeasureSpec{{Method: b, Pairs: catalog.PairsOf(b)}}
	if b.pair {
		m := correlationEntry(t, correlation{}, "between: [[one, two], [two, big]]")
		s.Measures[0].Between = m.Between
	}
	return s
}

// TestProcedures checks the progress and the scores of jobs on two pairs of models, and that a
// second run computes nothing. The models one and two take images of the same size, big takes
// larger ones.
func TestProcedures(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writePairs(t, dir)
	o := studytest.Options(t)
	var notes []string
	var last study.Progress
	o.Progress = func(p study.Progress) {
		last = p
		if notes == nil || notes[len(notes)-1] != p.Note {
			notes = append(notes, p.Note)
		}
	}
	r := studytest.Run(t, procedureStudy(t, dir, &brightness{pair: true, images: 10}), filepath.Join(dir, "run"), o)
	// Two pairs in two trials, with a note for each of 10 images. Each job counts as a pass, one
	// reading of the samples.
	if last.Total != 4*10 || last.Done != last.Total || last.Passes != 4 || len(notes) != 40 {
		t.Errorf("progress ends with %+v after %d notes, want 40 of 40 samples, 4 passes and 40 notes", last, len(notes))
	}
	var got []string
	for _, row := range r.Rows {
		if row.Trial == 0 {
			got = append(got, fmt.Sprintf("%s %s %s>%s n=%d", row.Model, row.Statistic, row.Layer, row.OtherLayer, row.N))
			if row.OtherModel == "" || row.Data != "shapes" || row.Transform != "" {
				t.Errorf("the row %+v, want one of a pair of models on shapes, without a transformation", row)
			}
		}
		if row.Trial == scores.MeanOverTrials && row.Statistic == "mean" && !(row.Low < row.Value && row.Value < row.High) {
			t.Errorf("the mean over trials is %v in [%v, %v], want it within its interval", row.Value, row.Low, row.High)
		}
	}
	penultimate := ""
	for _, row := range r.Rows {
		if row.Statistic == "difference" {
			penultimate = row.Layer
			if row.Model == "one" && math.Abs(row.Value) > 1e-9 || row.Model == "two" && row.Value == 0 {
				t.Errorf("images of %s and %s differ by %v, want 0 if they have the same size", row.Model, row.OtherModel, row.Value)
			}
		}
	}
	want := fmt.Sprintf("[one mean > n=10 one difference %[1]s>%[1]s n=10 two mean > n=10 two difference %[1]s>%[1]s n=10]", penultimate)
	if fmt.Sprint(got) != want {
		t.Errorf("rows\n%v, want\n%s", got, want)
	}
	again := &brightness{pair: true, images: 10, fail: errors.New("a finished procedure runs again")}
	studytest.Run(t, procedureStudy(t, dir, again), filepath.Join(dir, "run"), o)
	if left, _ := filepath.Glob(filepath.Join(dir, "run", "states", "*")); len(left) > 0 {
		t.Errorf("a finished run leaves %v", left)
	}
}

func TestStoppedProcedureResumes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writePairs(t, dir)
	o := studytest.Options(t)
	want := studytest.Run(t, procedureStudy(t, dir, &brightness{pair: true}), filepath.Join(dir, "whole"), o)
	out := filepath.Join(dir, "stopped")
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("stop")
	part := o
	part.Progress = func(p study.Progress) {
		if p.Done == 57 {
			cancel(stop)
		}
	}
	if _, err := study.Run(ctx, procedureStudy(t, dir, &brightness{pair: true}), out, part); !errors.Is(err, stop) {
		t.Fatal(err)
	}
	var at []int
	got := studytest.Run(t, procedureStudy(t, dir, &brightness{pair: true, resume: func(i int) { at = append(at, i) }}), out, o)
	if fmt.Sprint(at) != "[57 0 0 0]" { // two pairs in two trials, of which the first was stopped at sample 57
		t.Errorf("the jobs start at the samples %v, want 57 for the first and 0 for the others", at)
	}
	studytest.SameScores(t, want.Rows, got.Rows, 0)
}

func TestJobsShareResultsOfFirstModel(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writePairs(t, dir)
	o := studytest.Options(t)
	var shared []string // model A and trial of each job that saves a result for others
	b := &brightness{pair: true, images: 3, share: func(a string, trial int) { shared = append(shared, fmt.Sprint(a, trial)) }}
	s := procedureStudy(t, dir, b)
	s.Measures[0].Between = correlationEntry(t, correlation{}, "between: all").Between
	studytest.Run(t, s, filepath.Join(dir, "run"), o)
	if fmt.Sprint(shared) != "[one0 one1 two0 two1 big0 big1]" {
		t.Errorf("the jobs of six ordered pairs in two trials share results of %v, want each first model once in each trial", shared)
	}
	if _, err := os.Stat(filepath.Join(dir, "run", "shared")); !os.IsNotExist(err) {
		t.Errorf("a finished run keeps the folder of shared checkpoints: error %v", err)
	}
}

func TestDamagedCheckpointIsComputedAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writePairs(t, dir)
	o := studytest.Options(t)
	out := filepath.Join(dir, "run")
	ctx, cancel := context.WithCancel(t.Context())
	part := o
	part.Progress = func(study.Progress) { cancel() }
	if _, err := study.Run(ctx, procedureStudy(t, dir, &brightness{}), out, part); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	files, _ := filepath.Glob(filepath.Join(out, "states", "*.log"))
	if len(files) != 1 {
		t.Fatalf("the stopped run leaves %v", files)
	}
	if err := os.Truncate(files[0], 20); err != nil {
		t.Fatal(err)
	}
	warned := 0
	o.Warn = func(text string) {
		if strings.Contains(text, "is computed again") {
			warned++
		}
	}
	studytest.Run(t, procedureStudy(t, dir, &brightness{}), out, o)
	if warned != 1 {
		t.Errorf("%d warnings of a damaged checkpoint, want 1", warned)
	}
}

// TestShardsDoNotDivideProcedures checks that shards, runs on a part of the samples each, divide
// the cells of procedures (one for each model and trial) among them, and the samples of other
// measures.
func TestShardsDoNotDivideProcedures(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writePairs(t, dir)
	o := studytest.Options(t)
	newStudy := func() *study.Study {
		s := procedureStudy(t, dir, &brightness{images: 20})
		s.Measures = append(s.Measures, studytest.Parse(t, dir, pairsText).Measures...) // accuracy, whose samples are divided
		return s
	}
	want := studytest.Run(t, newStudy(), filepath.Join(dir, "whole"), o)
	var out []string
	for i := 1; i <= 4; i++ {
		out = append(out, filepath.Join(dir, fmt.Sprintf("shard%d", i)))
		if i == 4 {
			_, err := study.Merge(t.Context(), newStudy(), out[:3], o)
			var missing *results.MissingShards
			if !errors.As(err, &missing) {
				t.Fatalf("merging three of four shards: %v", err)
			}
		}
		part := o
		part.Shard = study.Shard{Index: i, Count: 4}
		studytest.Run(t, newStudy(), out[i-1], part)
		if cells := studytest.StoredKeys(t, out[i-1], "cells"); len(cells) == 0 || len(cells) > 2 {
			t.Errorf("shard %d of 4 finishes %d of 6 procedures, want 1 or 2", i, len(cells))
		}
	}
	got, err := study.Merge(t.Context(), newStudy(), out, o)
	if err != nil {
		t.Fatal(err)
	}
	studytest.SameScores(t, want.Rows, got.Rows, 1e-5)
}

func TestProcedureErrors(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writePairs(t, dir)
	o := studytest.Options(t)
	_, err := study.Run(t.Context(), procedureStudy(t, dir, &brightness{pair: true, images: 2}), filepath.Join(dir, "few"), o)
	if err == nil || !strings.Contains(err.Error(), "there is nothing to measure: brightness: it needs three samples") {
		t.Errorf("a study of too few samples: error %v, want one that names the reason", err)
	}
	_, err = study.Run(t.Context(), procedureStudy(t, dir, &brightness{pair: true, fail: errors.New("it broke")}), filepath.Join(dir, "broken"), o)
	if err == nil || !strings.HasSuffix(err.Error(), "brightness of models one and two on shapes: it broke") {
		t.Errorf("a procedure that fails: error %v, want its error and the names of models and data", err)
	}
}

// The plan of a study, which noether run --dry-run prints, includes the cost of procedures.
func TestPlanIncludesProcedures(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	testmodel.Write(t, dir, "one", testmodel.Options{})
	writePairs(t, dir)
	o := studytest.Options(t)
	p, err := study.NewPlan(t.Context(), procedureStudy(t, dir, &brightness{pair: true, images: 40}), o)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	cost, err := study.Estimate(t.Context(), p, "", o)
	if err != nil {
		t.Fatal(err)
	}
	if len(cost) != 2 || cost[0].Model != "one, two" || cost[0].Forwards != 80 || cost[0].Cells != 2 || cost[0].Samples != 40 || cost[0].Engine <= 0 {
		t.Errorf("the cost is %+v, want two entries, the first with 2 cells of one, two, 40 samples and 80 forward passes", cost)
	}
}

func TestWorkOfModelsCountsProceduresAndPairs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writePairs(t, dir)
	o := studytest.Options(t)
	s := procedureStudy(t, dir, &brightness{pair: true, images: 40})
	s.Measures = append(s.Measures, correlationEntry(t, correlation{}, "between: [big, one]"))
	p, err := study.NewPlan(t.Context(), s, o)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	work := p.Work(o)
	// Two trials of 40 samples for the pairs whose first model is one, and for those of two. The pair
	// of big and one takes 150 samples for each of the two models: clean and under two rotations,
	// which are the same in both trials and so count once.
	want := map[string]int64{"one": 2 * 40, "two": 2 * 40, "big": 2 * 150 * (1 + 2)}
	if len(work) != len(want) {
		t.Errorf("work of %d models, want %d", len(work), len(want))
	}
	for _, w := range work {
		if w.Forwards != want[w.Model] {
			t.Errorf("%s: %d samples, want %d", w.Model, w.Forwards, want[w.Model])
		}
	}
}

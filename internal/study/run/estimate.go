package run

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/noether-ml/noether/internal/machine"
	"github.com/noether-ml/noether/internal/study/internal/telemetry"
	"github.com/noether-ml/noether/internal/study/plan"
	"github.com/noether-ml/noether/internal/study/results"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// Estimate returns the estimated time and memory of a plan, for each model and data set. It opens
// each pass as a run does, reads a few batches and times the engine on them. Of each measure and
// layer size it feeds and scores one accumulator, or two if the layer is measured under several
// views. Finished cells are left out.
func Estimate(ctx context.Context, p *plan.Plan, o plan.Options) ([]plan.Cost, error) {
	if len(p.Cells) >= 1000 { // otherwise garbage collections take a third of the time
		defer machine.AllowGarbage()()
	}
	e := newEstimator(p, o)
	for _, pass := range plan.Passes(p.Cells, plan.LimitsOf(p.Study, &o), o.Shard) {
		if err := e.addPass(ctx, pass); err != nil {
			return nil, err
		}
	}
	for _, c := range p.PendingProcedures(o.Shard) {
		if err := e.addProcedure(ctx, c); err != nil {
			return nil, err
		}
	}
	for i, c := range e.costs {
		e.costs[i].Total = c.Open + c.Read + c.Engine + c.Measure + c.Score + c.Save
	}
	return e.costs, nil
}

// EngineTime returns the estimated time of the forward passes of a plan alone, from two batches of
// each model and data set. It takes seconds where Estimate takes up to a minute.
func EngineTime(ctx context.Context, p *plan.Plan, o plan.Options) (time.Duration, error) {
	e := newEstimator(p, o)
	var total time.Duration
	for _, pass := range plan.Passes(p.Cells, plan.LimitsOf(p.Study, &o), o.Shard) {
		for _, m := range pass.Models {
			layers, prediction := pass.Layers(m)
			perSample, err := e.sampleTime(ctx, m, pass.Data(), layers, prediction)
			if err != nil {
				return 0, err
			}
			total += time.Duration(pass.ForwardsOf(m)) * perSample
		}
	}
	return total, nil
}

// An estimator adds up the costs of passes and procedures.
type estimator struct {
	*runner
	costs       []plan.Cost
	counted     map[any]bool            // cells, and layers of models on data, that the costs include
	shapes      map[string]shapeTimes   // by Task.Shape, equal for tasks that take equally long
	timedTasks  map[string][]*plan.Task // one timed task of each shape, by measure
	passTimes   map[string]passTime     // by models, data and layers; by models and data alone: the times of the last such pass
	start       time.Time
	sampleTimes map[modelData]time.Duration // engine time of a sample, where it is timed alone
}

// A modelData identifies what shares a time of the engine.
type modelData struct {
	model *plan.Model
	data  *plan.Data
}

func newEstimator(p *plan.Plan, o plan.Options) *estimator {
	o.FailFast = true
	w := &results.Writer{Plan: p, Options: o, Log: telemetry.NewLogger(nil), Stats: &telemetry.Stats{}}
	return &estimator{runner: &runner{Writer: w, accs: map[*plan.Task]plan.Accumulator{}}, counted: map[any]bool{}, shapes: map[string]shapeTimes{},
		timedTasks: map[string][]*plan.Task{}, passTimes: map[string]passTime{}, start: time.Now(), sampleTimes: map[modelData]time.Duration{}}
}

func (e *estimator) costFor(models string, d *plan.Data) *plan.Cost {
	i := slices.IndexFunc(e.costs, func(c plan.Cost) bool { return c.Model == models && c.Data == d.Entry.Name })
	if i < 0 {
		i = len(e.costs)
		e.costs = append(e.costs, plan.Cost{Model: models, Data: d.Entry.Name})
	}
	return &e.costs[i]
}

// count adds one to a number of cells or layers, unless this was done before for the key.
func (e *estimator) count(n *int, key any) {
	if !e.counted[key] {
		e.counted[key] = true
		*n++
	}
}

// countLayer adds a layer to the number of layers of a cost, unless it was added before.
func (e *estimator) countLayer(c *plan.Cost, m *plan.Model, name string) {
	e.count(&c.Layers, [4]string{c.Model, c.Data, m.Entry.Name, name})
}

// addPass adds the cost of a pass: the measured times of one sample multiplied by the number of
// samples, the engine's multiplied by the number of forward passes, and the times of opening,
// scoring and saving.
func (e *estimator) addPass(ctx context.Context, p *plan.Pass) error {
	t, err := e.timesOfPass(ctx, p)
	if err != nil {
		return err
	}
	c := e.costFor(p.Title(), p.Data())
	c.Samples = max(c.Samples, p.Samples())
	c.Passes++
	c.Forwards += p.Forwards()
	c.Bytes = max(c.Bytes, p.Cost())
	c.Peak = max(c.Peak, t.peak)
	before := c.Read + c.Engine + c.Measure + c.Score
	for _, m := range p.Models {
		layers, _ := p.Layers(m)
		for _, l := range layers {
			e.countLayer(c, m, l.Name)
		}
		c.Engine += time.Duration(p.ForwardsOf(m)) * t.engine[m]
	}
	n := time.Duration(p.Samples())
	c.Open += t.open
	c.Read += n * t.read
	feed, score := e.timesOfTasks(p)
	c.Measure += n * feed
	c.Score += score
	for _, task := range p.AllTasks() {
		e.count(&c.Cells, task.Cell)
	}
	c.Save += e.savingTime(p, c.Read+c.Engine+c.Measure+c.Score-before)
	return nil
}

// timingLimit is the time after which a pass is timed only if no pass of the same models and data
// was timed before.
const timingLimit = 30 * time.Second

// timesOfPass times a pass, or returns the times of an earlier pass that reads the same layers
// under as many views. After timingLimit an earlier pass of the same models and data is enough.
func (e *estimator) timesOfPass(ctx context.Context, p *plan.Pass) (passTime, error) {
	key := p.Title() + "\x00" + p.Data().Entry.Name
	layers := ""
	for _, m := range p.Models {
		read, prediction := p.Layers(m)
		layers += fmt.Sprintln(m.Entry.Name, onnx.Names(read), prediction, len(p.Views))
	}
	known, ok := e.passTimes[key+layers]
	if !ok && time.Since(e.start) > timingLimit {
		known, ok = e.passTimes[key]
	}
	if ok {
		return known, nil
	}
	t, err := e.timePass(ctx, p)
	e.passTimes[key], e.passTimes[key+layers] = t, t
	return t, err
}

// timesOfTasks returns the time of feeding one sample to all tasks of a pass, and of scoring all.
func (e *estimator) timesOfTasks(p *plan.Pass) (feed, score time.Duration) {
	seen := map[string]bool{}
	var scores []time.Duration
	for _, tasks := range p.Tasks {
		var feeds []time.Duration
		for _, t := range tasks {
			layer := t.Shape() + t.Name()
			// The index into shapeTimes, which has other times for further views of a layer.
			rank := firstView
			if seen[layer] {
				rank = laterView
			}
			seen[layer] = true
			times := e.timesOfShape(t)[rank]
			feeds, scores = append(feeds, times.feed), append(scores, times.score)
		}
		feed += parallelTime(feeds, e.Options.Workers())
	}
	return feed, parallelTime(scores, e.Options.Workers())
}

// timesOfShape returns the times of the shape of a task. A shape that was not timed takes those of
// the timed shape of the same measure that is nearest in memory, scaled to its own memory as for an
// n x n matrix, such as a covariance: memory and feeding take n² steps, and scoring n³.
func (e *estimator) timesOfShape(t *plan.Task) shapeTimes {
	if known, ok := e.shapes[t.Shape()]; ok {
		return known
	}
	var times shapeTimes
	nearest := math.Inf(1)
	for _, other := range e.timedTasks[t.Cell.Method.Name()] {
		ratio := float64(max(1, t.Cost())) / float64(max(1, other.Cost()))
		if distance := math.Abs(math.Log(ratio)); distance < nearest {
			nearest = distance
			for i, o := range e.shapes[other.Shape()] {
				times[i] = taskTime{time.Duration(float64(o.feed) * ratio), time.Duration(float64(o.score) * math.Pow(ratio, 1.5))}
			}
		}
	}
	return times
}

// parallelTime returns the time of tasks that share the cores: their sum divided by the number of
// cores, but at least the time of the longest task.
func parallelTime(tasks []time.Duration, cores int) time.Duration {
	var sum, longest time.Duration
	for _, d := range tasks {
		sum += d
		longest = max(longest, d)
	}
	return max(longest, sum/time.Duration(cores))
}

// savingTime returns the time that a pass of the given duration spends on saving its accumulators
// and the records of its cells.
func (e *estimator) savingTime(p *plan.Pass, duration time.Duration) time.Duration {
	timer := newSaveTimer(e.Options.SaveInterval, e.Options.SaveFraction)
	var bytes int64
	cells := map[*plan.Cell]bool{}
	for _, t := range p.AllTasks() {
		bytes += t.FullCost
		cells[t.Cell] = true
	}
	saveTime := timer.cost(bytes)
	// The quotient is an integer: the number of saves.
	return saveTime*(duration/(saveTime+timer.wait(bytes))) + time.Duration(len(cells))*recordTime
}

// recordTime is the assumed time to write the record of a cell.
const recordTime = 5 * time.Millisecond

// addProcedure adds the cost of a procedure's cell: the forward passes that it declares, each at
// the engine time of its first model.
func (e *estimator) addProcedure(ctx context.Context, cell *plan.Cell) error {
	c := e.costFor(cell.ModelNames(), cell.Data)
	job := &cell.Procedure.Job
	forwards := cell.Procedure.Method.Work(job)
	c.Samples = max(c.Samples, job.Data.Len())
	for _, l := range job.A.Layers {
		e.countLayer(c, cell.Model, l.Name)
	}
	for _, l := range job.B.Layers {
		e.countLayer(c, cell.Model, "other "+l.Name) // of the second model
	}
	c.Passes++
	c.Forwards += forwards
	e.count(&c.Cells, cell)
	layers := job.A.Layers
	prediction := len(layers) == 0 && cell.Model.Net.Classes() > 0
	if len(layers) == 0 && !prediction {
		return nil // no layer to read, so no session can be opened
	}
	perSample, err := e.sampleTime(ctx, cell.Model, cell.Data, layers, prediction)
	if err != nil {
		return err
	}
	c.Engine += time.Duration(forwards) * perSample
	c.Peak = max(c.Peak, machine.PeakMemory())
	return nil
}

// timingBatch is the number of samples of the batch on which the engine is timed alone.
const timingBatch = 8

// sampleTime returns the engine time of one sample up to the given layers of a model, or up to
// those for which it was timed on the data before.
func (e *estimator) sampleTime(ctx context.Context, m *plan.Model, d *plan.Data, layers []tensor.Layer, prediction bool) (time.Duration, error) {
	key := modelData{m, d}
	if known, ok := e.sampleTimes[key]; ok {
		return known, nil
	}
	took, err := e.timeEngine(ctx, plan.TimingPass(m, d, timingBatch), layers, prediction)
	if err == nil {
		e.sampleTimes[key] = took
	}
	return took, err
}

// timeEngine returns the engine time of one sample up to the given layers of a pass's model.
func (e *estimator) timeEngine(ctx context.Context, p *plan.Pass, layers []tensor.Layer, prediction bool) (time.Duration, error) {
	r, err := newReader(p.Models[0], p.Data(), layers, plan.Reductions{}, nil, prediction, p.Batch, 1)
	if err != nil {
		return 0, err
	}
	defer r.session.Close()
	f := &feeder{Pass: p, stats: e.Stats}
	n := min(p.Batch, p.Hi)
	w := f.newSampleReader(ctx, p.Data().Order.First(n))
	defer w.stop()
	samples, _, err := w.collect(0, n)
	if err != nil {
		return 0, err
	}
	var inputs []tensor.Tensor
	for _, s := range samples[0] {
		inputs = append(inputs, s.Input)
	}
	if len(inputs) == 0 {
		return 0, fmt.Errorf("data %s: none of the first %d samples can be read", p.Data().Entry.Name, n)
	}
	if err := r.run(ctx, inputs, false); err != nil { // not timed: the first run of a session includes one-time work
		return 0, err
	}
	start := time.Now()
	err = r.run(ctx, inputs, false)
	return time.Since(start) / time.Duration(len(inputs)), err
}

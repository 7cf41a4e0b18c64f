package run

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/noether-ml/noether/internal/machine"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/study/internal/telemetry"
	"github.com/noether-ml/noether/study/plan"
	"github.com/noether-ml/noether/study/rundir"
	"github.com/noether-ml/noether/tensor"
)

// Estimate returns what a plan costs, for each model and data set. It opens each pass as a run
// does, reads a few batches, times the engine at all layers of the pass, and feeds and scores an
// accumulator of each measure and size of layer. Finished cells are left out.
func Estimate(ctx context.Context, p *plan.Plan, o plan.Options) ([]plan.Cost, error) {
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
	for i := range e.costs {
		c := &e.costs[i]
		c.Total = c.Open + c.Read + c.Engine + c.Measure + c.Score + c.Save
	}
	return e.costs, nil
}

// An estimator adds up the costs of passes and procedures.
type estimator struct {
	*runner
	costs  []plan.Cost
	lines  map[string]int          // index into costs, by models and data
	cells  map[*plan.Cell]bool     // cells already counted
	layers map[string]bool         // layers already counted
	tasks  map[string]shapeTimes   // by Task.Shape
	timed  map[string][]*plan.Task // tasks that were timed, by measure
	passes map[string]passTime     // by models and data, and by layers too
	start  time.Time
	speeds map[procedureKey]time.Duration // engine time of a sample
}

type procedureKey struct {
	model *plan.Model
	data  *plan.Data
}

func newEstimator(p *plan.Plan, o plan.Options) *estimator {
	o.FailFast = true
	w := &rundir.Writer{Plan: p, Options: o, Log: telemetry.NewLogger(nil), Stats: &telemetry.Stats{}}
	return &estimator{runner: &runner{Writer: w, accs: map[*plan.Task]plan.Accumulator{}}, lines: map[string]int{}, cells: map[*plan.Cell]bool{},
		layers: map[string]bool{}, tasks: map[string]shapeTimes{}, timed: map[string][]*plan.Task{}, passes: map[string]passTime{}, start: time.Now(), speeds: map[procedureKey]time.Duration{}}
}

func (e *estimator) line(models string, d *plan.Data) *plan.Cost {
	key := models + "\x00" + d.Entry.Name
	i, ok := e.lines[key]
	if !ok {
		i = len(e.costs)
		e.lines[key] = i
		e.costs = append(e.costs, plan.Cost{Model: models, Data: d.Entry.Name})
	}
	return &e.costs[i]
}

// countCell counts a cell the first time that it is seen.
func (e *estimator) countCell(c *plan.Cost, cell *plan.Cell) {
	if !e.cells[cell] {
		e.cells[cell] = true
		c.Cells++
	}
}

// countLayer counts a layer the first time that it is seen for a line of the estimate.
func (e *estimator) countLayer(c *plan.Cost, m *plan.Model, name string) {
	if key := fmt.Sprintf("%q", []string{c.Model, c.Data, m.Entry.Name, name}); !e.layers[key] {
		e.layers[key] = true
		c.Layers++
	}
}

// addPass adds a pass: what was timed of it, times the samples and tasks that it has.
func (e *estimator) addPass(ctx context.Context, p *plan.Pass) error {
	t, err := e.passTime(ctx, p)
	if err != nil {
		return err
	}
	c := e.line(p.Title(), p.Data())
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
	feed, score := e.taskTimes(p)
	c.Measure += n * feed
	c.Score += score
	for _, task := range p.AllTasks() {
		e.countCell(c, task.Cell)
	}
	c.Save += e.saving(p, c.Read+c.Engine+c.Measure+c.Score-before)
	return nil
}

// timingLimit is the time after which passes of models and data that were timed once are no longer
// timed.
const timingLimit = 30 * time.Second

// passTime times a pass. After timingLimit it returns the times of an earlier pass of the same
// models on the same data, if there is one.
func (e *estimator) passTime(ctx context.Context, p *plan.Pass) (passTime, error) {
	key := p.Title() + "\x00" + p.Data().Entry.Name
	layers := ""
	for _, m := range p.Models {
		read, prediction := p.Layers(m)
		layers += fmt.Sprintln(m.Entry.Name, onnx.Names(read), prediction, len(p.Views))
	}
	known, ok := e.passes[key+layers]
	if !ok && time.Since(e.start) > timingLimit {
		known, ok = e.passes[key]
	}
	if ok {
		return known, nil
	}
	t, err := e.timePass(ctx, p)
	e.passes[key], e.passes[key+layers] = t, t
	return t, err
}

// taskTimes returns the time of feeding a sample to all tasks of a pass, and of scoring them.
func (e *estimator) taskTimes(p *plan.Pass) (feed, score time.Duration) {
	seen := map[string]bool{}
	var scores []time.Duration
	for _, tasks := range p.Tasks {
		var feeds []time.Duration
		for _, t := range tasks {
			layer := t.Shape() + t.Name()
			turn := 0 // the layer's first view, or a further one; see shapeTimes
			if seen[layer] {
				turn = 1
			}
			seen[layer] = true
			times := e.shapeTimes(t)[turn]
			feeds, scores = append(feeds, times.feed), append(scores, times.score)
		}
		feed += onCores(feeds, e.Options.Workers())
	}
	return feed, onCores(scores, e.Options.Workers())
}

// shapeTimes returns the times of the shape of a task. A shape that was not timed takes the scaled
// times of the timed shape of the same measure that is nearest in memory. They scale as those of
// matrices do: memory with the square of their side, and scoring with its cube.
func (e *estimator) shapeTimes(t *plan.Task) shapeTimes {
	if known, ok := e.tasks[t.Shape()]; ok {
		return known
	}
	var out shapeTimes
	nearest := math.Inf(1)
	for _, o := range e.timed[t.Cell.Method.Name()] {
		ratio := float64(max(1, t.Cost())) / float64(max(1, o.Cost()))
		if distance := math.Abs(math.Log(ratio)); distance < nearest {
			nearest, out = distance, e.tasks[o.Shape()].scale(ratio)
		}
	}
	return out
}

// scale returns the times of a shape with ratio times the memory.
func (s shapeTimes) scale(ratio float64) shapeTimes {
	for i, t := range s {
		s[i] = taskTime{time.Duration(float64(t.feed) * ratio), time.Duration(float64(t.score) * math.Pow(ratio, 1.5))}
	}
	return s
}

// onCores returns the time of tasks that share the cores: their sum divided by the number of cores,
// but at least the time of the longest task.
func onCores(tasks []time.Duration, cores int) time.Duration {
	var sum, longest time.Duration
	for _, d := range tasks {
		sum += d
		longest = max(longest, d)
	}
	return max(longest, sum/time.Duration(cores))
}

// saving returns the time that a pass of a given length spends on saving its states and records.
func (e *estimator) saving(p *plan.Pass, length time.Duration) time.Duration {
	timer := newSaveTimer(e.Options.SaveInterval, e.Options.SaveShare)
	var bytes int64
	cells := map[*plan.Cell]bool{}
	for _, t := range p.AllTasks() {
		bytes += t.FullCost
		cells[t.Cell] = true
	}
	one := timer.cost(bytes)
	return one*(length/(one+timer.wait(bytes))) + time.Duration(len(cells))*recordTime
}

// recordTime is the time to write the record of a cell.
const recordTime = 5 * time.Millisecond

// addProcedure adds the cell of a procedure. Its time is estimated as that of forward passes of its
// first model.
func (e *estimator) addProcedure(ctx context.Context, cell *plan.Cell) error {
	c := e.line(cell.ModelNames(), cell.Data)
	job := &cell.Procedure.Job
	forwards := cell.Procedure.Method.Work(job)
	c.Samples = max(c.Samples, job.Data.Len())
	for _, l := range job.A.Layers {
		e.countLayer(c, cell.Model, l.Name)
	}
	for _, l := range job.B.Layers {
		e.countLayer(c, cell.Model, "other "+l.Name)
	}
	c.Passes++
	c.Forwards += forwards
	e.countCell(c, cell)
	layers := job.A.Layers
	prediction := len(layers) == 0 && cell.Model.Net.Classes() > 0
	if len(layers) == 0 && !prediction {
		return nil // no layer to read, so no session can be opened
	}
	key := procedureKey{cell.Model, cell.Data}
	if _, known := e.speeds[key]; !known {
		per, err := e.timeProcedure(ctx, plan.ProcedurePass(cell, procedureBatch), layers, prediction)
		if err != nil {
			return err
		}
		e.speeds[key] = per
	}
	c.Engine += time.Duration(forwards) * e.speeds[key]
	c.Peak = max(c.Peak, machine.PeakMemory())
	return nil
}

// procedureBatch is the number of samples of the batch that is timed for procedures.
const procedureBatch = 8

// timeProcedure returns the engine time of a sample at the layers of a procedure.
func (e *estimator) timeProcedure(ctx context.Context, p *plan.Pass, layers []onnx.Layer, prediction bool) (time.Duration, error) {
	r, err := newReader(p.Models[0], p.Data(), layers, prediction, p.Batch)
	if err != nil {
		return 0, err
	}
	defer r.session.Close()
	f := &feeder{Pass: p, stats: e.Stats}
	n := min(p.Batch, p.Hi)
	w := f.newSampleReader(ctx, p.Data().Order[:n])
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
	if err := r.run(ctx, inputs, false); err != nil { // includes one-time work
		return 0, err
	}
	start := time.Now()
	err = r.run(ctx, inputs, false)
	return time.Since(start) / time.Duration(len(inputs)), err
}

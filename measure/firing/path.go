package firing

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/seed"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/procedure"
	"github.com/noether-ml/noether/model"
	"github.com/noether-ml/noether/tensor"
	"github.com/noether-ml/noether/transform"
)

// A path is one kind of trajectory that the samples of a job lie on.
type path struct {
	factor  string    // in scores: what is varied, "" where the data or the transformation tell
	amounts []float64 // gamma by step, 0 or the identity among them
	centre  int       // the step that shows the reference itself

	// steps are the images that reference place becomes, one for each amount; nil where one is missing.
	steps func(place int) []int
	// read reads images of the path, ascending.
	read func(ctx context.Context, images []int) ([]image, error)
	// total is the number of images that there are.
	total int
	// back undoes what an image went through; nil where the path cannot be undone. It returns nil for the reference itself.
	back func(p image) transform.Op
	// matrix says that samples by steps are what tmeasures measures; gratings are on each other's trajectories.
	matrix bool
	// whole says that reading a reference reads all of its pictures: they are its own.
	whole bool
}

// An image is one input of the model, by its number along a path.
type image struct {
	number int
	index  int // of the sample
	label  int
	name   string
	input  tensor.Tensor
	sound  *dataset.Waveform // what the input is an item of; nil for images
}

func newImage(number int, s dataset.Sample) image {
	return image{number, s.Index, s.Label, s.Name, s.Input, s.Waveform}
}

// movedBy is what an Op makes of it.
func (p image) movedBy(op transform.Op) (tensor.Tensor, error) {
	return dataset.Sample{Index: p.index, Name: p.name, Input: p.input, Waveform: p.sound}.Apply(op)
}

// pathsOf are the trajectories of a job: those of its transformation or, where it has none, those that the data bring along.
func (m *firing) pathsOf(j *procedure.Job) []path {
	if j.Transform != nil {
		return []path{m.moved(j)}
	}
	if g := dataset.AsGratings(j.Data); g != nil {
		return []path{along(j, "phase", g.AlongPhase()), along(j, "orientation", g.AlongOrientation())}
	}
	if amounts := dataset.Amounts(j.Data); amounts != nil {
		return []path{frames(j, amounts)}
	}
	return nil
}

// along is a path around gratings. Places of the job's data differ from those of the walk, which are their samples' indices.
func along(j *procedure.Job, factor string, walk *dataset.GratingTrajectories) path {
	index := indices(j.Data)
	return path{
		factor: factor, amounts: walk.Amounts(), centre: len(walk.Amounts()) / 2, total: walk.Len(),
		steps: func(place int) []int { return walk.Trajectory(index(place)) },
		read: func(ctx context.Context, numbers []int) ([]image, error) {
			var out []image
			for s, err := range dataset.Read(ctx, walk, numbers, j.A.Model.Frame(), dataset.ReadOptions{}) {
				if err != nil {
					return nil, err
				}
				out = append(out, newImage(numbers[len(out)], s))
			}
			return out, nil
		},
	}
}

// indices tells the index of the sample at a place of data that describe themselves, as gratings do.
func indices(data dataset.Source) func(place int) int {
	return func(place int) int {
		s, err := dataset.Describe(context.Background(), data, place)
		if err != nil {
			return -1
		}
		return s.Index
	}
}

// frames is the path of data whose samples lie on trajectories.
func frames(j *procedure.Job, amounts []float64) path {
	return path{
		amounts: amounts, centre: slices.Index(amounts, 0), total: j.Data.Len(), matrix: true,
		steps: func(place int) []int { return dataset.Trajectory(j.Data, place) },
		read:  func(ctx context.Context, places []int) ([]image, error) { return readPlaces(ctx, j, places) },
	}
}

// readPlaces reads samples of the job's data, each of which must be readable: they have been before, or are parts of a trajectory.
func readPlaces(ctx context.Context, j *procedure.Job, places []int) ([]image, error) {
	samples, err := j.Read(ctx, places, j.A.Model.Frame())
	if err != nil {
		return nil, err
	}
	if len(samples) != len(places) {
		return nil, fmt.Errorf("%d of the samples %v of a trajectory cannot be read", len(places)-len(samples), places)
	}
	out := make([]image, len(samples))
	for i, s := range samples {
		out[i] = newImage(places[i], s)
	}
	return out, nil
}

// moved is the path of a transformation: the reference itself, and what each value makes of it. Image v of place p has the number
// p steps + v.
func (m *firing) moved(j *procedure.Job) path {
	list := m.members(j)
	n := len(list) + 1
	p := path{amounts: make([]float64, n), total: j.Data.Len() * n, whole: true, matrix: true, back: undoing(list)}
	for i, member := range list {
		p.amounts[i+1] = member.amount
	}
	p.steps = func(place int) []int {
		out := make([]int, n)
		for v := range out {
			out[v] = place*n + v
		}
		return out
	}
	p.read = func(ctx context.Context, numbers []int) ([]image, error) {
		var places []int
		for _, number := range numbers {
			if len(places) == 0 || places[len(places)-1] != number/n {
				places = append(places, number/n)
			}
		}
		samples, err := readPlaces(ctx, j, places)
		if err != nil {
			return nil, err
		}
		var out []image
		at := 0
		for _, number := range numbers {
			for samples[at].number != number/n {
				at++
			}
			moved := samples[at]
			moved.number = number
			if v := number % n; v > 0 {
				if moved.input, err = samples[at].movedBy(list[v-1].op(moved.index)); err != nil {
					return nil, err
				}
			}
			out = append(out, moved)
		}
		return out, nil
	}
	return p
}

// undoing returns what moves the image of a step back; nil where some member has no inverse.
func undoing(list []member) func(image) transform.Op {
	for _, m := range list {
		if _, ok := transform.Inverse(m.op(0)); !ok {
			return nil
		}
	}
	return func(p image) transform.Op {
		v := p.number % (len(list) + 1)
		if v == 0 {
			return nil
		}
		op, _ := transform.Inverse(list[v-1].op(p.index))
		return op
	}
}

// A member is one step of a trajectory by a transformation: an Op for each sample.
type member struct {
	amount float64 // what describes it: an angle, say, or its number where nothing does
	op     func(index int) transform.Op
}

// members are the values of the job's transformation without the identity, or so many draws of one that has a range.
func (m *firing) members(j *procedure.Job) []member {
	var out []member
	for v, value := range j.Transform.Values {
		if transform.Random(value.Law) {
			for step := range m.settings.Steps {
				op := func(index int) transform.Op { return m.draw(j, v, step, index) }
				out = append(out, member{amountOf(op(0), len(out)+1, false), op})
			}
			continue
		}
		op := func(index int) transform.Op { return j.Transform.Draw(j.Key, v, index) }
		if first := op(0); !isIdentity(first, j.A.Model) {
			out = append(out, member{amountOf(first, len(out)+1, true), op})
		}
	}
	return out
}

// draw is the step-th draw of a value for a sample; per trial, all samples get the same one, with noise of their own.
func (m *firing) draw(j *procedure.Job, value, step, index int) transform.Op {
	k := j.Key
	k.Trial = k.Trial*maxSteps + step // draws of other steps and of other trials are independent
	return j.Transform.Draw(k, value, index)
}

func amountOf(op transform.Op, number int, fixed bool) float64 {
	if v, ok := transform.Parameter(op); ok && fixed {
		return v
	}
	return float64(number)
}

// isIdentity reports whether an Op leaves noise as it is.
func isIdentity(op transform.Op, m *model.Model) bool {
	noise := tensor.New(m.ImageShape()...)
	r := seed.Rand(1, "firing: noise")
	for i := range noise.Data {
		noise.Data[i] = r.Float32()
	}
	p := image{input: noise}
	if m.Sound() {
		p.sound = &dataset.Waveform{Rate: noiseRate, Data: noise.Data}
	}
	after, err := p.movedBy(op)
	return err == nil && slices.Equal(noise.Data, after.Data)
}

// noiseRate is in samples a second.
const noiseRate = 8000

var errNoTrajectory = errors.New("the study names no transformation, and the data have no trajectories of their own, as gratings and video have")

// eligible reports whether the sample at a place may stand as a reference: its trajectory is complete on every path.
func eligible(paths []path, place int) bool {
	for _, p := range paths {
		if p.steps(place) == nil {
			return false
		}
	}
	return true
}

// referencesOf is how many of the strongest inputs have their trajectories followed.
func (m *firing) referencesOf(j *procedure.Job) int {
	switch {
	case m.settings.References > 0:
		return m.settings.References
	case j.Transform == nil && dataset.AsGratings(j.Data) != nil:
		return 1 // the optimal grating
	}
	return 10
}

// nullReferences draws the places around which trajectories are followed that have nothing to do with any unit.
func nullReferences(places []int, most int, k measure.Key) []int {
	order := seed.Rand(k.Seed, "firing: null", k.Data, k.Transform, k.Trial).Perm(len(places))
	out := make([]int, min(most, len(places)))
	for i := range out {
		out[i] = places[order[i]]
	}
	return out
}

// nullOf is the reference of a slot of a unit among n that were drawn: evenly, by a hash of the two (SplitMix64).
func nullOf(unit, slot, n int) int {
	return int((hash(uint64(unit), uint64(slot)) >> 32) * uint64(n) >> 32)
}

// hash mixes two numbers (SplitMix64).
func hash(a, b uint64) uint64 {
	x := a*0x9e3779b97f4a7c15 + (b+1)*0xd1b54a32d192ed03
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

package firing

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/model"
	"github.com/noether-ml/noether/internal/procedure"
	"github.com/noether-ml/noether/internal/seed"
	"github.com/noether-ml/noether/tensor"
	"github.com/noether-ml/noether/transform"
)

// A trajectory describes one kind of trajectory that the samples of a job have, such as rotation,
// or the phase of gratings (images of sinusoidal stripes). The place of a sample is its position in
// the random order of the study.
type trajectory struct {
	factor  string    // Factor of the scores, such as phase; "" if there is only one kind of trajectory
	amounts []float64 // parameter of each step (gamma in Goodfellow et al. 2009); 0 for the reference itself
	centre  int       // index of the step that is the reference itself

	// images returns the image numbers of a place, one for each amount; nil if one is missing.
	images func(place int) []int
	read   func(ctx context.Context, images []int) ([]image, error)
	// total is the number of images on all trajectories.
	total int
	// inverse returns nil for the reference itself. It is a nil function if a step has no inverse.
	inverse func(p image) transform.Op
	// tmeasures: the variances of that library apply. They do not for gratings, whose trajectories
	// share images.
	tmeasures bool
	// exclusive reports whether each image is on one trajectory only.
	exclusive bool
}

// An image is one input, which may be audio. Its number identifies it within a kind of trajectory.
type image struct {
	number   int
	index    int // of the sample
	label    int // of the sample, or dataset.NoLabel
	name     string
	input    tensor.Tensor
	waveform *dataset.Waveform // the waveform of the input; nil for images
}

func newImage(number int, s dataset.Sample) image {
	return image{number, s.Index, s.Label, s.Name, s.Input, s.Waveform}
}

// transformed returns the input transformed by an Op, a transformation with fixed parameters.
func (p image) transformed(op transform.Op) (tensor.Tensor, error) {
	return dataset.Sample{Index: p.index, Name: p.name, Input: p.input, Waveform: p.waveform}.Apply(op)
}

// trajectoriesOf returns those of the job's transformation or, without one, of the data.
func (m *firing) trajectoriesOf(j *procedure.Job) []trajectory {
	if j.Transform != nil {
		return []trajectory{m.transformTrajectory(j)}
	}
	if g := dataset.AsGratings(j.Data); g != nil {
		return []trajectory{gratingTrajectory(j, "phase", g.AlongPhase()), gratingTrajectory(j, "orientation", g.AlongOrientation())}
	}
	if amounts := dataset.Amounts(j.Data); amounts != nil {
		return []trajectory{videoTrajectory(j, amounts)}
	}
	return nil
}

// Images of gratings are numbered as in trajectories, not by the places of the job's data.
func gratingTrajectory(j *procedure.Job, factor string, trajectories *dataset.GratingTrajectories) trajectory {
	index := sampleIndex(j.Data)
	return trajectory{
		factor: factor, amounts: trajectories.Amounts(), centre: len(trajectories.Amounts()) / 2, total: trajectories.Len(),
		images: func(place int) []int { return trajectories.Trajectory(index(place)) },
		read: func(ctx context.Context, numbers []int) ([]image, error) {
			var out []image
			for s, err := range dataset.Read(ctx, trajectories, numbers, j.A.Model.Frame(), dataset.ReadOptions{}) {
				if err != nil {
					return nil, err
				}
				out = append(out, newImage(numbers[len(out)], s))
			}
			return out, nil
		},
	}
}

// sampleIndex maps places to sample indices, -1 without one. Descriptions must need no reading.
func sampleIndex(data dataset.Source) func(place int) int {
	return func(place int) int {
		s, err := dataset.Describe(context.Background(), data, place)
		if err != nil {
			return -1
		}
		return s.Index
	}
}

// videoTrajectory returns the trajectory of data whose samples form trajectories, such as video.
func videoTrajectory(j *procedure.Job, amounts []float64) trajectory {
	return trajectory{
		amounts: amounts, centre: slices.Index(amounts, 0), total: j.Data.Len(), tmeasures: true,
		images: func(place int) []int { return dataset.Trajectory(j.Data, place) },
		read:   func(ctx context.Context, places []int) ([]image, error) { return readSamples(ctx, j, places) },
	}
}

func readSamples(ctx context.Context, j *procedure.Job, places []int) ([]image, error) {
	samples, err := j.Read(ctx, places, j.A.Model.Frame())
	if err != nil {
		return nil, err
	}
	if len(samples) != len(places) {
		return nil, fmt.Errorf("%d of the samples at places %v of a trajectory cannot be read", len(places)-len(samples), places)
	}
	return images(places, samples), nil
}

// transformTrajectory numbers version v of place p as p*n + v, where n counts versions with the
// reference.
func (m *firing) transformTrajectory(j *procedure.Job) trajectory {
	list := m.stepsOf(j)
	n := len(list) + 1
	p := trajectory{amounts: make([]float64, n), total: j.Data.Len() * n, exclusive: true, tmeasures: true, inverse: inverses(list)}
	for i, member := range list {
		p.amounts[i+1] = member.amount
	}
	p.images = func(place int) []int {
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
		samples, err := readSamples(ctx, j, places)
		if err != nil {
			return nil, err
		}
		var out []image
		at := 0
		for _, number := range numbers {
			for samples[at].number != number/n { // the number of a clean sample is its place
				at++
			}
			version := samples[at]
			version.number = number
			if v := number % n; v > 0 {
				if version.input, err = samples[at].transformed(list[v-1].op(version.index)); err != nil {
					return nil, err
				}
			}
			out = append(out, version)
		}
		return out, nil
	}
	return p
}

func inverses(list []step) func(image) transform.Op {
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

type step struct {
	amount float64                      // parameter of the transformation, such as an angle, or the number of the step
	op     func(index int) transform.Op // of the sample with an index
}

// stepsOf returns the values without the identity, and Settings.Steps draws of each random one.
func (m *firing) stepsOf(j *procedure.Job) []step {
	var out []step
	const fixed = true
	for v, value := range j.Transform.Values {
		if transform.Random(value.Transform) {
			for draw := range m.settings.Steps {
				op := func(index int) transform.Op { return m.draw(j, v, draw, index) }
				out = append(out, step{stepAmount(op(0), len(out)+1, !fixed), op})
			}
			continue
		}
		op := func(index int) transform.Op { return j.Transform.Draw(j.Key, v, index) }
		if first := op(0); !isIdentity(first, j.A.Model) {
			out = append(out, step{stepAmount(first, len(out)+1, fixed), op})
		}
	}
	return out
}

// draw returns the random transformation of a sample at a step; value is an index into the
// transformation's values. With per: trial all samples of a trial have the same parameters, but
// each its own noise. The job's Key seeds its draws.
func (m *firing) draw(j *procedure.Job, value, step, index int) transform.Op {
	k := j.Key
	k.Trial = k.Trial*maxSteps + step // so that draws of different steps and trials are independent
	return j.Transform.Draw(k, value, index)
}

// stepAmount returns the parameter of an Op that is no random draw, else the number of the step.
func stepAmount(op transform.Op, number int, fixed bool) float64 {
	if v, ok := transform.Parameter(op); ok && fixed {
		return v
	}
	return float64(number)
}

// isIdentity reports whether an Op does not change an input of random values.
func isIdentity(op transform.Op, m *model.Model) bool {
	noise := tensor.New(m.ImageShape()...)
	r := seed.Rand(1, "firing: noise")
	for i := range noise.Data {
		noise.Data[i] = r.Float32()
	}
	p := image{input: noise}
	if m.TakesAudio() {
		p.waveform = &dataset.Waveform{Rate: noiseRate, Data: noise.Data}
	}
	after, err := p.transformed(op)
	return err == nil && slices.Equal(noise.Data, after.Data)
}

// noiseRate is the sampling rate of the noise in samples per second.
const noiseRate = 8000

var errNoTrajectory = errors.New("the study names no transformation, and the data have no trajectories, as gratings and video have")

// eligible reports whether the sample's trajectories are complete, so that it can be a reference.
func eligible(kinds []trajectory, place int) bool {
	return !slices.ContainsFunc(kinds, func(p trajectory) bool { return p.images(place) == nil })
}

func (m *firing) referencesOf(j *procedure.Job) int {
	switch {
	case m.settings.References > 0:
		return m.settings.References
	case j.Transform == nil && dataset.AsGratings(j.Data) != nil:
		return 1 // the grating that activates the unit most
	}
	return 10
}

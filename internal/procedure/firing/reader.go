package firing

import (
	"context"
	"fmt"
	"math"
	"runtime"

	"golang.org/x/sync/errgroup"

	"github.com/noether-ml/noether/internal/model"
	"github.com/noether-ml/noether/internal/procedure"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/tensor"
)

type reader struct {
	job     *procedure.Job
	group   group
	layers  []int // indices of the layers that are read
	session *model.Session
	buffers *model.Buffers
	units   map[int]*unitSet  // by layer
	scratch map[int][]float32 // by layer: memory for the values of units
}

func newReader(j *procedure.Job, g group, units map[int]*unitSet, batch int) (*reader, error) {
	r := &reader{job: j, group: g, layers: g.layers(), units: units, scratch: map[int][]float32{}}
	var err error
	const withScores = false // the class scores of the model are not needed
	if r.session, err = j.A.Model.NewSession(layersOf(j, g), withScores); err != nil {
		return nil, err
	}
	if r.buffers, err = r.session.NewBuffers(batch); err != nil {
		r.session.Close()
		return nil, err
	}
	return r, nil
}

func (r *reader) close() { r.session.Close() }

type activations struct {
	images []image
	values map[int]unitValues // by layer
}

type unitValues struct {
	data []float32     // images x n
	n    int           // number of units of the layer
	z    tensor.Tensor // activations of the layer; the first axis is that of the images
}

func (r unitValues) row(i int, c chunk) []float32 { return r.data[i*r.n+c.lo : i*r.n+c.hi] }

// run pads a smaller batch with copies of the last image, since ONNX Runtime may round differently
// for another batch size, and a unit whose value equals its threshold might then not fire.
func (r *reader) run(ctx context.Context, images []image) (*activations, error) {
	inputs := make([]tensor.Tensor, r.buffers.Cap())
	for i := range inputs {
		inputs[i] = images[min(i, len(images)-1)].input
	}
	if err := r.session.Run(ctx, inputs, r.buffers); err != nil {
		return nil, err
	}
	s := &activations{images: images, values: map[int]unitValues{}}
	for k, layer := range r.layers {
		z := r.buffers.Layer(k).Slice(0, len(images))
		if i := z.FirstNonFinite(); i >= 0 {
			p := images[i/(z.Len()/len(images))]
			return nil, fmt.Errorf("layer %q: %w", r.job.A.Layers[layer].Name, &measure.NonFinite{View: "clean", Index: p.index, Name: p.name})
		}
		u := r.units[layer]
		r.scratch[layer] = u.read(r.scratch[layer], z)
		s.values[layer] = unitValues{r.scratch[layer], u.count(), z}
	}
	return s, nil
}

// forEachPart calls work in parallel for parts of at most maxPart units of one chunk. at is the
// chunk's index in the group.
func (g group) forEachPart(work func(at int, c chunk)) {
	g.forEach(maxPart, work)
}

const maxPart = 1 << 13

func (g group) forEachChunk(work func(at int, c chunk)) {
	g.forEach(math.MaxInt, work)
}

// forEach calls work in parallel for parts of at most size units; at is the chunk's index.
func (g group) forEach(size int, work func(at int, c chunk)) {
	var eg errgroup.Group
	eg.SetLimit(max(1, runtime.GOMAXPROCS(0)))
	for at, c := range g {
		for lo := c.lo; lo < c.hi; lo += min(size, c.hi-lo) {
			part := chunk{c.layer, lo, lo + min(size, c.hi-lo)}
			eg.Go(func() error {
				work(at, part)
				return nil
			})
		}
	}
	eg.Wait()
}

type batch struct {
	images []image
	err    error
}

// forEach runs the model on images, given by ascending image.number, in batches, and passes the
// activations to each. seen counts images, unreadable ones included. The next batch is read while
// the model runs.
func (r *reader) forEach(ctx context.Context, numbers []int, size int, read func(context.Context, []int) ([]image, error), each func(s *activations, seen int) error) error {
	ctx, cancel := context.WithCancel(ctx)
	ahead := make(chan batch, 1)
	go func() {
		defer close(ahead)
		for at := 0; at < len(numbers) && ctx.Err() == nil; at += size {
			images, err := read(ctx, numbers[at:min(at+size, len(numbers))])
			select {
			case ahead <- batch{images, err}:
			case <-ctx.Done():
			}
			if err != nil {
				return
			}
		}
	}()
	defer func() { // wait for the reading goroutine
		cancel()
		for range ahead {
		}
	}()
	seen := 0
	for b := range ahead {
		if b.err != nil {
			return b.err
		}
		seen = min(seen+size, len(numbers))
		if len(b.images) == 0 {
			continue
		}
		s, err := r.run(ctx, b.images)
		if err == nil {
			err = each(s, seen)
		}
		if err != nil {
			return err
		}
	}
	return ctx.Err()
}

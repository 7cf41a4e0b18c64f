package firing

import (
	"context"
	"fmt"
	"runtime"

	"golang.org/x/sync/errgroup"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/procedure"
	"github.com/noether-ml/noether/model"
	"github.com/noether-ml/noether/tensor"
)

// An eye runs a model on images and reads the layers of a group.
type eye struct {
	job     *procedure.Job
	group   group
	at      []int // indices of the layers read
	session *model.Session
	buffers *model.Buffers
	units   map[int]*unitSet // by layer
	scratch map[int][]float32
}

func openEye(j *procedure.Job, g group, units map[int]*unitSet, batch int) (*eye, error) {
	e := &eye{job: j, group: g, at: g.layers(), units: units, scratch: map[int][]float32{}}
	var err error
	if e.session, err = j.A.Model.NewSession(layersOf(j, g), false); err != nil {
		return nil, err
	}
	if e.buffers, err = e.session.NewBuffers(batch); err != nil {
		e.session.Close()
		return nil, err
	}
	return e, nil
}

func (e *eye) close() { e.session.Close() }

// A sight is what the units of a group show of some images.
type sight struct {
	images []image
	rows   map[int]rows // by layer
}

// rows are the units of a layer on some pictures: one row for each, of all the layer's units.
type rows struct {
	data []float32
	n    int           // units of the layer
	z    tensor.Tensor // the whole layer: b x ...
}

// row is what image i gives of the units of a chunk.
func (r rows) row(i int, c chunk) []float32 { return r.data[i*r.n+c.lo : i*r.n+c.hi] }

// see runs the model on at most a batch of images. A batch that is not full is filled up, so that the engine does the same for a
// image whenever it comes: with another number of images it may round otherwise, and a unit at its threshold would not fire.
func (e *eye) see(ctx context.Context, images []image) (*sight, error) {
	inputs := make([]tensor.Tensor, e.buffers.Cap())
	for i := range inputs {
		inputs[i] = images[min(i, len(images)-1)].input
	}
	if err := e.session.Run(ctx, inputs, e.buffers); err != nil {
		return nil, err
	}
	s := &sight{images: images, rows: map[int]rows{}}
	for k, layer := range e.at {
		z := e.buffers.Layer(k).Slice(0, len(images))
		if i := z.Finite(); i >= 0 {
			p := images[i/(z.Len()/len(images))]
			return nil, fmt.Errorf("layer %q: %w", e.job.A.Layers[layer].Name, &measure.NonFinite{View: "clean", Index: p.index, Name: p.name})
		}
		u := e.units[layer]
		e.scratch[layer] = u.read(e.scratch[layer], z)
		s.rows[layer] = rows{e.scratch[layer], u.count(), z}
	}
	return s, nil
}

// each hands every chunk of the group to work, some at a time side by side. A large chunk is cut into pieces, which must not depend
// on each other.
func (g group) each(work func(at int, c chunk)) {
	var eg errgroup.Group
	eg.SetLimit(max(1, runtime.GOMAXPROCS(0)))
	for at, c := range g {
		for lo := c.lo; lo < c.hi; lo += piece {
			part := chunk{c.layer, lo, min(c.hi, lo+piece)}
			eg.Go(func() error {
				work(at, part)
				return nil
			})
		}
	}
	eg.Wait()
}

const piece = 1 << 13

// whole is each without cutting.
func (g group) whole(work func(at int, c chunk)) {
	var eg errgroup.Group
	eg.SetLimit(max(1, runtime.GOMAXPROCS(0)))
	for at, c := range g {
		eg.Go(func() error {
			work(at, c)
			return nil
		})
	}
	eg.Wait()
}

// A batch of images, or why there is none.
type batch struct {
	images []image
	err    error
}

// walk shows the images of given numbers, ascending, to the model, and what it sees to each. They are read ahead while the model runs.
func (e *eye) walk(ctx context.Context, numbers []int, size int, read func(context.Context, []int) ([]image, error), each func(s *sight, seen int) error) error {
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
	defer func() { // nobody reads the data once this has returned
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
		s, err := e.see(ctx, b.images)
		if err == nil {
			err = each(s, seen)
		}
		if err != nil {
			return err
		}
	}
	return ctx.Err()
}

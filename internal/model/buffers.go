package model

import (
	"errors"
	"fmt"
	"slices"

	"github.com/noether-ml/noether/engine"
	"github.com/noether-ml/noether/tensor"
)

// Buffers hold the inputs and outputs of a session for one batch of images. They must not be used
// by several goroutines at once.
type Buffers struct {
	session  *Session
	batch    int             // largest number of images of a batch
	size     int             // images per run of the engine: the size of a part
	n        int             // images of the last batch
	samples  []int           // of each input for images, its index in the session; -1: not needed
	outputs  []tensor.Tensor // rows x shape, in the order of the session
	parts    []part          // runs of the engine with size images each
	last     part            // for a last run of fewer images, if the model takes any number
	lastPart int             // index of the part that shares its rows with last
	latest   part            // of the latest run
	clean    *Buffers        // in RunTransformed: those of the clean images
	partners []int           // in RunTransformed
	logs     []float32       // result of LogProbs
	identity engine.Samples  // of the next batches
	given    []tensor.Tensor // of a forced session: the values of each layer
}

// Identify names the samples of the next batches, for networks that look activations up.
func (b *Buffers) Identify(s engine.Samples) { b.identity = s }

// A part holds the inputs and outputs of one run of the engine. The outputs are rows of the
// buffers. Parts that run in sequence share their inputs; parts that run in parallel do not.
type part struct {
	n               int             // number of images
	inputs, outputs []*engine.Array // in the order of the engine's session
}

// NewBuffers returns buffers for batches of at most batch images, at least one. Closing the session
// frees them. If the model takes a fixed number of images, a batch is several runs of the engine.
// The last one is padded with copies of the last image, whose outputs are not returned. s.workers
// is the number of parts of a batch that run in parallel. Buffers that need more than 64 MiB and
// more than half of the free memory are an error.
func (s *Session) NewBuffers(batch int) (*Buffers, error) {
	if batch < 1 {
		return nil, s.model.wrap(fmt.Errorf("a batch of %d images: use at least one", batch))
	}
	b := &Buffers{session: s, batch: batch, size: batch}
	switch {
	case s.model.batch > 0: // the fixed number of images
		b.size = s.model.batch
	case s.workers > 1: // parts that run in parallel
		b.size = (batch + s.workers - 1) / s.workers
	}
	if err := b.checkMemory(); err != nil {
		return nil, s.model.wrap(err)
	}
	if err := b.bind(); err != nil {
		b.free()
		return nil, s.model.wrap(err)
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.buffers = append(s.buffers, b)
	return b, nil
}

// smallBuffers is the size of buffers, in bytes, up to which they are allocated however little
// memory is free: the program itself needs more.
const smallBuffers = 64 << 20

// checkMemory returns an error if the buffers would take more than half of the free memory, which a
// large layer may do with a single image.
func (b *Buffers) checkMemory() error {
	need := 0. // bytes
	for i, o := range b.session.outputs {
		if o.Keep || b.session.shares(i) {
			continue
		}
		bytes := 4 * float64(b.batch) // of float32
		for _, d := range o.Shape {
			bytes *= float64(d)
		}
		need += bytes
	}
	if free := b.session.model.net.Limits().Memory; free > 0 && need > max(float64(free)/2, smallBuffers) {
		return fmt.Errorf("the layers that are read take %.1f GiB for a batch of %d images, and %.1f GiB of memory are free: choose fewer or smaller layers, or give the program more memory",
			need/(1<<30), b.batch, float64(free)/(1<<30))
	}
	return nil
}

// divide allocates the buffers anew, for runs of at most n images.
func (b *Buffers) divide(n int) error {
	b.free()
	b.size, b.outputs, b.samples = n, nil, nil
	return b.bind()
}

// bind allocates the buffers and binds them to the engine.
func (b *Buffers) bind() error {
	runs := (b.batch + b.size - 1) / b.size
	memory := b.session.allocate(runs * b.size)
	for i, o := range b.session.outputs {
		t := tensor.Tensor{Shape: append([]int{runs * b.size}, o.Shape...)}
		switch n := tensor.Size(t.Shape); {
		case o.Keep:
		case b.session.shares(i):
			t.Data = b.outputs[b.session.same[i]].Data
		case memory != nil:
			t.Data, memory = memory[:n:n], memory[aligned(n):]
		default:
			t.Data = make([]float32, n)
		}
		b.outputs = append(b.outputs, t)
	}
	names := b.session.session.Inputs()
	for _, name := range b.session.model.input.names() {
		b.samples = append(b.samples, slices.Index(names, name))
	}
	for k := range runs {
		p := part{n: b.size}
		var err error
		if k > 0 && b.session.workers == 1 {
			p.inputs = b.parts[0].inputs
		} else {
			p.inputs, err = b.session.inputArrays(b.size)
		}
		if err == nil {
			p.outputs, err = b.rows(k*b.size, (k+1)*b.size)
		}
		b.parts = append(b.parts, p)
		if err != nil {
			return err
		}
	}
	return nil
}

// allocate returns memory of the engine for all outputs of n samples, one after the other at aligned
// places, or nil.
func (s *Session) allocate(n int) []float32 {
	a, ok := s.session.(engine.Allocator)
	if !ok || !s.lends {
		return nil
	}
	total := 0
	for i, o := range s.outputs {
		if !o.Keep && !s.shares(i) {
			total += aligned(n * tensor.Size(o.Shape))
		}
	}
	return a.Allocate(total)
}

// aligned rounds up to a multiple of 16, so that outputs begin at multiples of 64 bytes.
func aligned(n int) int { return (n + 15) &^ 15 }

// rows returns the rows t[from:to] of every output t as bound arrays, which share the memory of t.
// Outputs that the engine keeps, or that share another's memory, have none.
func (b *Buffers) rows(from, to int) (arrays []*engine.Array, err error) {
	for i, t := range b.outputs {
		if b.session.shares(i) {
			continue
		}
		a := &engine.Array{Shape: append([]int{to - from}, t.Shape[1:]...)}
		if !b.session.outputs[i].Keep {
			a.Data = t.Slice(from, to).Data
		}
		if err := b.session.session.Bind(a); err != nil {
			return arrays, err
		}
		arrays = append(arrays, a)
	}
	return arrays, nil
}

// part returns the part for run k of a batch; the run has n images.
func (b *Buffers) part(k, n int) (part, error) {
	if n == b.size || b.session.model.batch > 0 {
		return b.parts[k], nil
	}
	if b.last.n == n && b.lastPart == k {
		return b.last, nil
	}
	b.freeLast()
	var err error
	if b.last.inputs, err = b.session.inputArrays(n); err != nil {
		return part{}, err
	}
	if b.last.outputs, err = b.rows(k*b.size, k*b.size+n); err != nil {
		return part{}, err
	}
	b.last.n, b.lastPart = n, k
	return b.last, nil
}

// fill normalises images and writes them to the inputs of a part. If the model takes a fixed number
// of images and there are fewer, it repeats the last one.
func (b *Buffers) fill(images []tensor.Tensor, inputs []*engine.Array) {
	if b.session.model.batch > 0 {
		for len(images) < b.size {
			images = append(slices.Clip(images), images[len(images)-1])
		}
	}
	values := make([]*engine.Array, len(b.samples))
	for k, at := range b.samples {
		if at >= 0 {
			values[k] = inputs[at]
		}
	}
	b.session.model.input.fill(images, values)
}

// Cap returns the largest number of images of a batch.
func (b *Buffers) Cap() int { return b.batch }

// Len returns the number of images of the last batch.
func (b *Buffers) Len() int { return b.n }

// Layer returns the i-th layer of the session for the images of the last batch, n x shape. The next
// batch overwrites it.
func (b *Buffers) Layer(i int) tensor.Tensor { return b.outputs[:b.session.layers][i].Slice(0, b.n) }

// LogProbs returns the natural logarithms of the class probabilities of the last batch, n x
// classes. They are valid until the next call. If classes is not nil, the softmax and the result
// contain only these classes of the model, in that order. A class that the model lacks is an error,
// and so is a session without class scores.
func (b *Buffers) LogProbs(classes []int) (tensor.Tensor, error) {
	s := b.session
	if s.scores < 0 {
		return tensor.Tensor{}, s.model.wrap(errors.New("the session was opened without class scores"))
	}
	known := s.model.scores.classes
	for _, c := range classes {
		if c < 0 || c >= known {
			return tensor.Tensor{}, s.model.wrap(fmt.Errorf("class %d is outside the model's %d classes, 0 to %d", c, known, known-1))
		}
	}
	width := known
	if classes != nil {
		width = len(classes)
	}
	b.logs = slices.Grow(b.logs[:0], b.n*width)[:b.n*width]
	for i := range b.n {
		row := b.logs[i*width : (i+1)*width]
		scores := s.model.scores.row(b.outputs[s.scores].Data, i)
		if classes == nil {
			copy(row, scores)
		}
		for k, c := range classes {
			row[k] = scores[c]
		}
		if err := s.model.scores.logProbs(row); err != nil {
			return tensor.Tensor{}, s.model.wrap(err)
		}
	}
	return tensor.Tensor{Shape: []int{b.n, width}, Data: b.logs}, nil
}

func (b *Buffers) free() {
	b.freeLast()
	for k, p := range b.parts {
		if k == 0 || b.session.workers > 1 {
			closeAll(p.inputs)
		}
		closeAll(p.outputs)
	}
	b.parts = nil
}

func (b *Buffers) freeLast() {
	closeAll(b.last.inputs)
	closeAll(b.last.outputs)
	b.last = part{}
}

func closeAll(arrays []*engine.Array) {
	for _, a := range arrays {
		a.Close()
	}
}

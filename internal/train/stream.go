package train

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/model"
	"github.com/noether-ml/noether/internal/seed"
	"github.com/noether-ml/noether/tensor"
	"github.com/noether-ml/noether/transform"
)

// A Stream is a Source that reads a data set of any size. Samples are decoded and augmented on
// other goroutines while training runs, within bounded memory.
type Stream struct {
	Data dataset.Source
	// Preprocess holds the frame in which samples are read: the size and crop of images, the rate
	// and length of audio. Its mean and standard deviation are applied after Augment.
	Preprocess model.Preprocess
	// Augment transforms each sample. Draws depend on the seed, the epoch and the sample.
	// Evaluation does not augment. Optional.
	Augment transform.Transform
	Seed    uint64
	// Factor names the target of the main loss, Spec.Loss: a factor of variation, as b x 1 in a
	// batch of b; or MaskTarget or PresenceTarget; "": the labels.
	Factor string
	Tasks  []string // targets of the further losses, Spec.Tasks, named as in Factor
	// MaskClasses is the number of classes of masks, for PresenceTarget.
	MaskClasses int
	Read        dataset.ReadOptions // how far samples are decoded ahead

	batch Batch
}

// Targets that are not factors.
const (
	MaskTarget     = "mask"     // the class of each position
	PresenceTarget = "presence" // whether the mask has class k, for k from 1; b x (classes - 1)
)

func (s *Stream) Len() int { return s.Data.Len() }

// Batch implements Source. Samples are not augmented.
func (s *Stream) Batch(ctx context.Context, indices []int) (Batch, error) {
	for b, err := range s.Batches(ctx, 0, indices, len(indices)) {
		return b, err
	}
	return Batch{}, errors.New("the batch has no samples")
}

// Batches yields the samples with the given indices, in order, in batches of the given size. The
// next batch overwrites the last. Epochs count from 1; epoch 0 does not augment.
func (s *Stream) Batches(ctx context.Context, epoch int, indices []int, size int) iter.Seq2[Batch, error] {
	var src dataset.Source = s.Data
	if s.Augment != nil && epoch > 0 {
		src = &augmented{s.Data, s.Augment, s.Seed, epoch}
	}
	return func(yield func(Batch, error) bool) {
		s.clear()
		for sample, err := range dataset.Read(ctx, src, indices, s.Preprocess.Frame, s.Read) {
			if err == nil {
				err = s.add(sample, size)
			}
			if err != nil {
				yield(Batch{}, err)
				return
			}
			if s.batch.len() == size {
				if !yield(s.batch, nil) {
					return
				}
				s.clear()
			}
		}
		if s.batch.len() > 0 {
			yield(s.batch, nil)
		}
	}
}

func (s *Stream) clear() {
	for i := range s.batch.Inputs {
		clearRows(&s.batch.Inputs[i])
	}
	if s.batch.Tasks == nil && len(s.Tasks) > 0 {
		s.batch.Tasks = make([]Targets, len(s.Tasks))
	}
	s.batch.Targets.clear()
	for i := range s.batch.Tasks {
		s.batch.Tasks[i].clear()
	}
}

func (t *Targets) clear() {
	t.Classes = t.Classes[:0]
	clearRows(&t.Target)
	clearRows(&t.Masks)
}

func clearRows(t *tensor.Tensor) {
	if t.Rank() > 0 {
		t.Data, t.Shape[0] = t.Data[:0], 0
	}
}

func (s *Stream) add(sample dataset.Sample, size int) error {
	b := &s.batch
	if len(b.Inputs) == 0 {
		b.Inputs = []tensor.Tensor{{Shape: append([]int{0}, sample.Input.Shape...), Data: make([]float32, 0, size*sample.Input.Len())}}
	}
	x := &b.Inputs[0]
	if !slices.Equal(x.Shape[1:], sample.Input.Shape) {
		return fmt.Errorf("%s has shape %v, and earlier samples %v: resize them to one size", sample.Name, sample.Input.Shape, x.Shape[1:])
	}
	at := len(x.Data)
	x.Data = append(x.Data, sample.Input.Data...)
	if err := s.normalise(x.Data[at:], sample.Input); err != nil {
		return err
	}
	x.Shape[0]++
	for i := range s.Tasks {
		if err := s.addTarget(&b.Tasks[i], s.Tasks[i], sample); err != nil {
			return err
		}
	}
	return s.addTarget(&b.Targets, s.Factor, sample)
}

// addTarget appends a target of a sample: its label, a factor, or one from its mask.
func (s *Stream) addTarget(t *Targets, name string, sample dataset.Sample) error {
	if name == MaskTarget || name == PresenceTarget {
		if sample.Truth == nil || sample.Truth.Mask.Rank() != 2 {
			return fmt.Errorf("%s has no mask", sample.Name)
		}
		if name == MaskTarget {
			return appendRow(&t.Masks, sample.Truth.Mask, sample.Name+": the mask")
		}
		has := presence(sample.Truth.Mask, s.MaskClasses)
		if k := slices.Max(sample.Truth.Mask.Data); int(k) >= s.MaskClasses {
			return fmt.Errorf("%s: the mask has the class %g, and there are classes 0 to %d", sample.Name, k, s.MaskClasses-1)
		}
		return appendRow(&t.Target, tensor.Tensor{Shape: []int{len(has)}, Data: has}, sample.Name)
	}
	if name == "" {
		if sample.Label == dataset.NoLabel {
			return fmt.Errorf("%s has no label", sample.Name)
		}
		t.Classes = append(t.Classes, sample.Label)
		return nil
	}
	v, ok := sample.Factors[name]
	if !ok {
		return fmt.Errorf("%s has no factor %q", sample.Name, name)
	}
	return appendRow(&t.Target, tensor.Tensor{Shape: []int{1}, Data: []float32{float32(v)}}, sample.Name)
}

func appendRow(t *tensor.Tensor, x tensor.Tensor, name string) error {
	if t.Rank() == 0 {
		t.Shape = append([]int{0}, x.Shape...)
	}
	if !slices.Equal(t.Shape[1:], x.Shape) {
		return fmt.Errorf("%s has shape %v, and earlier ones %v: resize them to one size", name, x.Shape, t.Shape[1:])
	}
	t.Data = append(t.Data, x.Data...)
	t.Shape[0]++
	return nil
}

func (s *Stream) normalise(dst []float32, sample tensor.Tensor) error {
	p := s.Preprocess
	if p.Mean == nil && p.Std == nil && p.Order != "bgr" && p.Range == [2]float32{} && !p.Standardise {
		return nil
	}
	var err error
	if sample.Rank() == 2 {
		err = p.CheckAudio()
	} else {
		err = p.Check(sample.Shape[0])
	}
	if err == nil {
		p.Normalise(dst, sample)
	}
	return err
}

type augmented struct {
	dataset.Source
	transform transform.Transform
	seed      uint64
	epoch     int
}

// At implements dataset.Source. It moves the mask of a sample as the drawn transformation op moves
// its positions.
func (a *augmented) At(ctx context.Context, i int, f dataset.Frame) (dataset.Sample, error) {
	s, err := a.Source.At(ctx, i, f)
	if err != nil {
		return s, err
	}
	op := a.transform.Draw(seed.Rand(a.seed, "train: augmentation", a.epoch, s.Index))
	if s.Truth != nil && s.Truth.Mask.Rank() == 2 {
		mask := s.Truth.Mask
		p, ok := transform.PointMapOf(op, mask.Shape[0], mask.Shape[1])
		if !ok {
			return s, fmt.Errorf("%s: this augmentation does not say how it moves the mask", s.Name)
		}
		s.Truth = &dataset.Truth{Mask: moveMask(mask, p.Source, p.Wrap)}
	}
	s.Input, err = s.Apply(op)
	return s, err
}

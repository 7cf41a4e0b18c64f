package recipe

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/model"
	"github.com/noether-ml/noether/internal/model/preprocessing"
	"github.com/noether-ml/noether/internal/study/open"
	"github.com/noether-ml/noether/internal/train"
)

type datasets struct {
	train, validation, test dataset.Source // validation and test may be nil
	shape                   []int          // of a sample at the size at which it is read
	classes                 []string       // names of the labels
	// masks is the number of classes of pixels, with the background; 0: not known.
	masks int
}

// open opens the data that a training file names. Without a target (what the network learns, such
// as a factor, a known property of the samples), the labels are learnt; a network that is trained
// layer by layer needs neither.
func (f *File) open(ctx context.Context, p model.Preprocess) (*datasets, error) {
	o := &datasets{}
	src, err := f.files().Data(ctx, f.Data)
	if err != nil {
		return nil, err
	}
	o.train = src
	if f.target() == "" && src.Classes() == nil && !f.Network.layerwise() {
		return nil, f.node.Get("data").Errorf("the samples have no labels: set target to one of their factors")
	}
	o.classes = src.Classes()
	if o.masks, err = f.maskClasses(src); err != nil {
		return nil, err
	}
	if err := f.holdOut(ctx, o); err != nil {
		return nil, err
	}
	if f.LabelNoise > 0 {
		if o.train, err = dataset.LabelNoise(o.train, f.LabelNoise, f.Seed); err != nil {
			return nil, f.node.Get("label-noise").Errorf("%w", err)
		}
	}
	if f.Test != nil {
		if o.test, err = f.files().Data(ctx, *f.Test); err != nil {
			return nil, err
		}
	}
	if o.train.Len() < f.Batch {
		return nil, f.node.Errorf("a batch of %d is larger than the %d training samples: set batch", f.Batch, o.train.Len())
	}
	first, err := o.train.At(ctx, 0, p.Frame)
	if err != nil {
		return nil, err
	}
	o.shape = first.Input.Shape
	if err := f.Augment.check(f.node.Get("augment"), first.Waveform != nil); err != nil {
		return nil, err
	}
	return o, o.checkClasses()
}

func (f *File) files() *open.Files { return open.In(filepath.Dir(f.path), f.Seed) }

// holdOut opens or splits off the validation data.
func (f *File) holdOut(ctx context.Context, o *datasets) (err error) {
	v, src := f.Validation, o.train
	switch {
	case v.Data != nil:
		o.validation, err = f.files().Data(ctx, *v.Data)
		return err
	case v.Share == 0:
		return nil
	}
	d := dataset.SplitOptions{Seed: f.Seed, Stratified: f.target() == "" && src.Classes() != nil}
	if o.validation, err = dataset.Split(ctx, src, 0, v.Share, d); err != nil {
		return err
	}
	if o.train, err = dataset.Split(ctx, src, v.Share, 1, d); err != nil {
		return err
	}
	if o.validation.Len() == 0 || o.train.Len() == 0 {
		return f.node.Get("validation").Errorf("the fraction %g of %d samples leaves %d for validation and %d for training", v.Share, src.Len(), o.validation.Len(), o.train.Len())
	}
	return nil
}

func (o *datasets) checkClasses() error {
	for name, src := range map[string]dataset.Source{"validation": o.validation, "test": o.test} {
		if src != nil && o.classes != nil && len(src.Classes()) > len(o.classes) {
			return fmt.Errorf("the data for %s have %d classes, and the training data %d", name, len(src.Classes()), len(o.classes))
		}
	}
	return nil
}

func (o *datasets) close() error {
	var errs []error
	for _, src := range []dataset.Source{o.train, o.validation, o.test} {
		if src != nil {
			errs = append(errs, dataset.Close(src))
		}
	}
	return errors.Join(errs...)
}

const (
	withAugmentation    = true
	withoutAugmentation = false
)

func (r *run) stream(src dataset.Source, augment bool) *train.Stream {
	f := r.File
	s := &train.Stream{Data: src, Preprocess: r.network.preprocess, Seed: f.Seed, Factor: f.target(), MaskClasses: r.data.masks}
	for _, t := range f.Tasks {
		s.Tasks = append(s.Tasks, t.stream())
	}
	if augment {
		s.Augment = f.Augment.Transform
	}
	return s
}

func (f *File) preprocess() (model.Preprocess, error) {
	if config := f.Preprocess.File; config != nil {
		return preprocessing.ReadConfig(f.resolve(config.String()))
	}
	return f.Preprocess.Settings, nil
}

// resolve returns a path that the training file names, which is absolute or relative to the file's
// folder, as a path that can be opened.
func (f *File) resolve(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(filepath.Dir(f.path), path)
}

package main

import (
	"context"
	"errors"
	"fmt"
	"image/png"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/noether-ml/noether/engine/ort"
	"github.com/noether-ml/noether/internal/train"
	"github.com/noether-ml/noether/internal/train/autoencoder"
	"github.com/noether-ml/noether/internal/train/filters"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

const (
	side      = 14 // of patches (squares cut from images), in pixels
	units     = 64 // of a layer
	maxLayers = 3  // largest number of layers
)

// The hyperparameters in which the networks differ. The paper does not give its targets and decays
// of figure 3. Its decays of stacks are paperDecays; depthDecays also has 0.3, near the best one of a
// single layer.
var (
	targets     = []float64{unpenalised, -0.3, -0.6, -0.8, -0.9, -0.95, -0.98}
	ridgeDecays = []float64{0, 0.003, 0.01, 0.03, 0.06, 0.1, 0.15, 0.2, 0.3, 0.5, 1, 3}
	depthDecays = []float64{0, 1e-5, 0.001, 0.01, 0.1, 0.3, 1, 10}
	paperDecays = []float64{0, 1e-5, 0.001, 0.01, 0.1, 1, 10}
)

// unpenalised stands in targets for networks without the sparsity penalty.
const (
	unpenalised   = 0
	penaltyWeight = 100
)

// cell returns how the names of the networks of ridge.onnx with a target and a decay start.
func cell(target, decay float64) string {
	if target == unpenalised {
		return fmt.Sprintf("targetnone/decay%g", decay)
	}
	return fmt.Sprintf("target%g/decay%g", target, decay)
}

// mild is the largest decay under which an epoch that increases the validation error is undone (see
// the flag -take-back). A larger decay is expected to increase the error. Then the networks of
// depth.onnx and copies.onnx undo epochs that increase the objective of training, error and decay
// together, and those of ridge.onnx undo none.
const mild = 0.03

// train trains the networks of ridge.onnx or of depth.onnx; which is ridge or depth.
func (p plan) train(ctx context.Context, which string) error {
	started := time.Now()
	patterns, held, err := p.patches(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("%d patches, %d held out, %.0f s\n", patterns.Shape[0], held.Shape[0], time.Since(started).Seconds())
	networks := p.ridge
	if which == "depth" {
		networks = p.depth
	}
	if err := networks(ctx, patterns, held); err != nil {
		return err
	}
	fmt.Printf("%s.onnx after %.0f s\n", which, time.Since(started).Seconds())
	return nil
}

// parallel calls f for 0 to n-1, on all cores, until one fails.
func parallel(ctx context.Context, n int, f func(ctx context.Context, i int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i := range n {
		group.Go(func() error { return f(ctx, i) })
	}
	return group.Wait()
}

// pick returns the usual value of a setting, or a small one with -quick.
func (p plan) pick(usual, quick int) int {
	if p.quick {
		return quick
	}
	return usual
}

// settings returns the settings of a layer without the sparsity penalty.
func (p plan) settings(decay float64, seed uint64) autoencoder.Settings {
	return autoencoder.Settings{Units: units, Decay: decay, Rate: 0.002,
		Engine: ort.Options{Threads: 1},
		FitOptions: train.FitOptions{Epochs: p.pick(20, 2), Seed: seed, KeepLast: true,
			RollbackFactor: p.rollback, RollbackByLoss: decay <= mild}}
}

// ridge trains networks with every target and every decay, several times each. held is for
// validation.
func (p plan) ridge(ctx context.Context, patterns, held tensor.Tensor) error {
	branches := make([]autoencoder.Branch, p.trainings*len(targets)*len(ridgeDecays))
	err := parallel(ctx, len(branches), func(ctx context.Context, i int) error {
		number, target, decay := i%p.trainings+1, targets[i/p.trainings/len(ridgeDecays)], ridgeDecays[i/p.trainings%len(ridgeDecays)]
		s := p.settings(decay, uint64(number))
		if target != unpenalised {
			s.Target, s.Weight = target, penaltyWeight
		}
		if decay > mild {
			s.RollbackFactor = 0
		}
		l, err := autoencoder.Train(ctx, p.rt, patterns, held, s)
		if err != nil {
			return err
		}
		name := fmt.Sprintf("%s/training%d", cell(target, decay), number)
		branches[i] = autoencoder.Branch{Name: name, Layers: []*autoencoder.Layer{l}}
		if number > 1 {
			return nil
		}
		return p.sheet("ridge", strings.ReplaceAll(cell(target, decay), "/", "-"), 8, 3, autoencoder.Images(side, 1, l))
	})
	if err != nil {
		return err
	}
	return p.save("ridge.onnx")(autoencoder.Model(side, 1, branches...))
}

// A tree trains stacks of maxLayers layers with every decay at every layer. Stacks with the same
// decays of their lower layers share these layers.
type tree struct {
	plan
	mu       sync.Mutex
	branches []autoencoder.Branch
}

// decays returns the weight decays of the layers of stacks.
func (p plan) decays() []float64 {
	if p.scale == "paper" {
		return paperDecays
	}
	return depthDecays
}

// depth trains stacks with every combination of decays.
func (p plan) depth(ctx context.Context, patterns, held tensor.Tensor) error {
	t := &tree{plan: p}
	decays := p.decays()
	err := parallel(ctx, len(decays), func(ctx context.Context, i int) error {
		return t.grow(ctx, patterns, held, decays[i:i+1], nil)
	})
	if err != nil {
		return err
	}
	return p.save("depth.onnx")(autoencoder.Model(side, 1, t.branches...))
}

// grow trains the layer with the last of decays on top of the layers below, whose activations
// patterns and held are, and then all layers above it.
func (t *tree) grow(ctx context.Context, patterns, held tensor.Tensor, decays []float64, below []*autoencoder.Layer) error {
	l, err := autoencoder.Train(ctx, t.rt, patterns, held, t.settings(decays[len(decays)-1], uint64(len(decays))))
	if err != nil {
		return err
	}
	layers := append(below[:len(below):len(below)], l)
	if len(layers) == maxLayers {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.branches = append(t.branches, autoencoder.Branch{Name: path(decays), Layers: layers})
		return nil
	}
	inner, err := encoded(ctx, t.rt, l, patterns, held)
	if err != nil {
		return err
	}
	for _, decay := range t.plan.decays() {
		if err := t.grow(ctx, inner[0], inner[1], append(decays[:len(decays):len(decays)], decay), layers); err != nil {
			return err
		}
	}
	return nil
}

// encoded returns the activations of a layer on sets of inputs.
func encoded(ctx context.Context, rt *ort.Runtime, l *autoencoder.Layer, sets ...tensor.Tensor) ([]tensor.Tensor, error) {
	var out []tensor.Tensor
	for _, x := range sets {
		h, err := autoencoder.Encode(ctx, rt, l, x)
		if err != nil {
			return nil, err
		}
		out = append(out, h)
	}
	return out, nil
}

// path names a stack by its decays from the first layer on.
func path(decays []float64) string {
	var parts []string
	for _, d := range decays {
		parts = append(parts, strconv.FormatFloat(d, 'g', -1, 64))
	}
	return "decays" + strings.Join(parts, ",")
}

// copy trains the best network of each depth again, p.copies times, from other initial weights.
func (p plan) copy(ctx context.Context) error {
	best, err := p.best()
	if err != nil {
		return err
	}
	patterns, held, err := p.patches(ctx)
	if err != nil {
		return err
	}
	branches := make([]autoencoder.Branch, maxLayers*p.copies)
	err = parallel(ctx, len(branches), func(ctx context.Context, i int) error {
		decays, number := best[i/p.copies], i%p.copies
		b := autoencoder.Branch{Name: fmt.Sprintf("depth%d/copy%d", len(decays), number)}
		patterns, held := patterns, held
		for k, decay := range decays {
			seed := uint64(1000*(number+1) + k) // of no other training
			l, err := autoencoder.Train(ctx, p.rt, patterns, held, p.settings(decay, seed))
			if err != nil {
				return err
			}
			inner, err := encoded(ctx, p.rt, l, patterns, held)
			if err != nil {
				return err
			}
			patterns, held = inner[0], inner[1]
			b.Layers = append(b.Layers, l)
		}
		branches[i] = b
		return nil
	})
	if err != nil {
		return err
	}
	for i := range maxLayers {
		b := branches[i*p.copies]
		fmt.Printf("%s: %s\n", strings.Split(b.Name, "/")[0], path(best[i]))
		if err := p.sheet("copies", fmt.Sprintf("depth%d", i+1), 8, 3, autoencoder.Images(side, 1, b.Layers...)); err != nil {
			return err
		}
	}
	return p.save("copies.onnx")(autoencoder.Model(side, 1, branches...))
}

// save returns a function that writes a model into the output folder, unless there is an error.
func (p plan) save(name string) func(*onnx.Model, error) error {
	return func(m *onnx.Model, err error) error {
		if err != nil {
			return err
		}
		raw, err := m.Bytes()
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(p.out, name), raw, 0o666)
	}
}

// sheet writes filters as MODEL.pictures/NAME.png, where reports find them: side by side in
// columns, enlarged by scale.
func (p plan) sheet(model, name string, columns, scale int, images []tensor.Tensor) error {
	img, err := filters.Sheet(images, columns, scale)
	if err != nil {
		return err
	}
	folder := filepath.Join(p.out, model+".pictures")
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return err
	}
	f, err := os.Create(filepath.Join(folder, name+".png"))
	if err != nil {
		return err
	}
	return errors.Join(png.Encode(f, img), f.Close())
}

// Goodfellow trains the networks of papers/goodfellow/goodfellow-2009.yaml, and makes tables of its
// scores. The study repeats Goodfellow et al. 2009, "Measuring invariances in deep networks";
// figures and sections in comments are those of this paper.
//
//	go run ./papers/goodfellow ridge -trainings 5 -images photos -o models  # ridge.onnx, filters as images
//	go run ./papers/goodfellow depth -images photos -o models               # depth.onnx
//	noether run papers/goodfellow/goodfellow-2009.yaml --var MODELS=./models ...
//	noether run papers/goodfellow/goodfellow-2009-depth.yaml --var NETWORKS=depth --var MODELS=./models ... -o runs/depth
//	go run ./papers/goodfellow copies -copies 100 -images photos -o models -scores runs/depth/scores.csv
//	noether run papers/goodfellow/goodfellow-2009-depth.yaml --var NETWORKS=copies --var MODELS=./models ... -o runs/copies
//	go run ./papers/goodfellow gabor -trainings 5 -images photos -o papers/results # Gabor fits of the filters
//	go run ./papers/goodfellow tables -o papers/results -scores runs/goodfellow-2009/scores.csv,runs/depth/scores.csv
//
// The networks are trained on whitened patches of one half of the images. The studies measure on
// the other half and on videos. All networks of one kind are in one model, so that a study measures
// them in one reading of the samples. The name of a layer says how it was trained.
//
// ridge.onnx has autoencoders of one layer, several for each cell of a grid of target activations
// and weight decays; its name is from the ridge of high scores in this grid, figure 3. depth.onnx
// has stacks of one to three layers with every combination of decays, and copies.onnx the stack of
// each depth with the best scores, trained again. A test is a set of inputs: gratings, clips of
// videos, and images under a moving camera (pan, turn, orbit). The natural tests are all but
// gratings.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"

	"github.com/noether-ml/noether/engine/ort"
	"github.com/noether-ml/noether/papers/internal/tablefile"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	tablefile.Main("goodfellow", func(args []string, _ io.Writer) error { return run(ctx, args) })
}

// A plan holds the flags.
type plan struct {
	images, out string
	scores      []string
	trainings   int     // of each target and decay of ridge.onnx, and of each layer of gabor
	copies      int     // of the best network of each depth
	rollback    float64 // the flag -take-back
	quick       bool    // train little
	scale       string  // small or paper
	rt          *ort.Runtime
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errors.New("usage: goodfellow COMMAND [flags], with COMMAND one of ridge, depth, copies, gabor or tables")
	}
	var p plan
	var list string
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	flags.StringVar(&p.images, "images", "", "folder of images, of which the networks are trained on one half")
	flags.StringVar(&p.out, "o", "models", "folder of the models, or of the tables")
	flags.StringVar(&list, "scores", "", "files scores.csv, separated by commas")
	flags.IntVar(&p.trainings, "trainings", 3, "number of trainings for each target and decay of ridge, and of each layer of gabor")
	flags.IntVar(&p.copies, "copies", 10, "number of copies of the best network of each depth")
	flags.Float64Var(&p.rollback, "take-back", 0.7, "undo an epoch that increases the validation error (in depth and copies, with a large decay: the objective that training minimises), and multiply the learning rate by this factor; 0: never")
	flags.StringVar(&p.scale, "scale", "small", "weight decays of the stacks of depth: small, those of docs/results/firing.md, or paper, those of the paper")
	flags.BoolVar(&p.quick, "quick", false, "train little, to test the commands")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	if p.scale != "small" && p.scale != "paper" {
		return fmt.Errorf("unknown scale %q: it must be small or paper", p.scale)
	}
	if list != "" {
		p.scores = strings.Split(list, ",")
	}
	if err := os.MkdirAll(p.out, 0o777); err != nil {
		return err
	}
	if args[0] == "tables" {
		return p.tables()
	}
	if p.images == "" {
		return errors.New("name a folder of images: -images photos")
	}
	library, _, err := ort.Find("")
	if err != nil {
		return err
	}
	if p.rt, err = ort.Load(library); err != nil {
		return err
	}
	switch args[0] {
	case "ridge", "depth":
		return p.train(ctx, args[0])
	case "copies":
		return p.copy(ctx)
	case "gabor":
		return p.gabor(ctx)
	}
	return fmt.Errorf("unknown command %q: it must be ridge, depth, copies, gabor or tables", args[0])
}

package main

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/noether-ml/noether/internal/plural"
	"github.com/noether-ml/noether/internal/study"
	"github.com/noether-ml/noether/internal/train"
	"github.com/noether-ml/noether/internal/train/recipe"
)

func trainCommand(engine *engineFlags) *cobra.Command {
	var out string
	var every int
	var asJSON, dryRun bool
	var vars []string
	c := &cobra.Command{
		Use:   "train TRAINING.yaml",
		Short: "Train a network or fine-tune a model, as described by a training file",
		Long: `Trains a network as described by a training file: data, network (a new one or an ONNX model), optimiser, schedule,
epochs, augmentation, validation. It writes into a folder: model.onnx, log.csv (a row for each epoch), summary.json
and, with --checkpoints, the networks of single epochs. A stopped training resumes after its last epoch when the
command is run again, and gives the same weights.

A file with the key vary describes several trainings. Each has its own folder within that of -o, and runs.csv has a
row for each.`,
		Example: "  noether train train.yaml -o networks/one\n  noether train train.yaml -o networks/one --checkpoints 5",
		Args:    usageArgs(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			values, err := variables(c, vars)
			if err != nil {
				return err
			}
			f, err := recipe.Load(args[0], values)
			if err != nil {
				return err
			}
			if c.Flags().Changed("checkpoints") {
				if every < 1 {
					return usagef(c, "--checkpoints is %d; it must be a number of epochs, 1 or more", every)
				}
				for _, t := range f.Trainings() { // several if the file has the key vary
					t.Save = every
				}
			}
			if dryRun {
				return predictTraining(c, f, engine, asJSON)
			}
			out = cmp.Or(out, filepath.Join("networks", fileName(args[0])))
			o, err := engine.open()
			if err != nil {
				return err
			}
			return runTraining(c, f, out, o, asJSON)
		},
	}
	p := c.Flags()
	p.StringVarP(&out, "out", "o", "", "output folder (default: networks/NAME-OF-THE-FILE)")
	p.IntVar(&every, "checkpoints", 0, "save the networks of the first epoch and of every N-th epoch as ONNX models")
	p.StringArrayVar(&vars, "var", nil, "NAME=VALUE for ${NAME} in the file; a path is relative to the working directory; may be repeated")
	p.BoolVar(&asJSON, "json", false, "print the summary as JSON")
	p.BoolVar(&dryRun, "dry-run", false, "print the trainings, their networks and their estimated time, without training: one step of each network is timed")
	return c
}

// predictTraining prints what the trainings of a file will cost.
func predictTraining(c *cobra.Command, f *recipe.File, engine *engineFlags, asJSON bool) error {
	o, err := engine.open()
	if err != nil {
		return err
	}
	found, err := recipe.Predict(c.Context(), f.Trainings(), recipe.Options{Runtime: o.Runtime, Threads: o.Threads, Device: o.Device})
	if err != nil {
		return err
	}
	if asJSON {
		return printJSON(found)
	}
	var seconds float64
	untimed := 0 // trainings whose time is not known
	for _, p := range found {
		if p.Seconds == 0 {
			untimed++
		}
		if p.Missing != "" {
			fmt.Fprintf(stdout, "%s: %s with batches of %d; the data are missing: %s\n", p.Name, plural.Of(p.Epochs, "epoch"), p.Batch, p.Missing)
			continue
		}
		text := fmt.Sprintf("%s: %s, %s with batches of %d: %s", p.Name, plural.Of(p.Samples, "sample"), plural.Of(p.Epochs, "epoch"), p.Batch, plural.Of(p.Steps, "step"))
		if p.Parameters > 0 {
			text += fmt.Sprintf("; %s; about %s and %.0f MiB", plural.Of(int(p.Parameters), "parameter"), duration(p.Seconds), float64(p.Memory)/(1<<20))
		}
		fmt.Fprintln(stdout, text)
		seconds += p.Seconds
	}
	switch total := plural.Of(len(found), "training"); {
	case untimed == len(found):
		fmt.Fprintf(stdout, "%s, whose time cannot be predicted\n", total)
	case untimed > 0:
		fmt.Fprintf(stdout, "%s; about %s on this machine as it is now, without %d whose time cannot be predicted\n", total, duration(seconds), untimed)
	default:
		fmt.Fprintf(stdout, "%s, about %s on this machine as it is now\n", total, duration(seconds))
	}
	return nil
}

// duration returns a number of seconds as text, without a false precision.
func duration(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second))
	switch {
	case d > 10*time.Hour:
		return fmt.Sprintf("%.0f hours", d.Hours())
	case d > time.Minute:
		return d.Round(time.Minute).String()
	}
	return d.Round(100 * time.Millisecond).String()
}

func runTraining(c *cobra.Command, f *recipe.File, out string, o study.Options, asJSON bool) error {
	progress, done := showProgress(os.Stderr)
	summaries, err := recipe.RunAll(c.Context(), f, out, recipe.Options{
		Runtime: o.Runtime, Threads: o.Threads, Device: o.Device,
		Progress: func(p recipe.Progress) {
			progress(study.Progress{Done: p.Done, Total: p.Total, Model: p.Name, Data: fmt.Sprintf("epoch %d of %d", p.Epoch, p.Epochs), Note: metricsText(p.Metrics)})
		},
	})
	done()
	if err != nil {
		return err
	}
	trainings := f.Trainings()
	switch {
	case asJSON && len(trainings) == 1:
		return printJSON(summaries[0])
	case asJSON:
		return printJSON(summaries)
	}
	for i, s := range summaries {
		if err := printTraining(stdout, s, filepath.Join(out, trainings[i].Folder())); err != nil {
			return err
		}
	}
	return nil
}

// metricsText formats a loss and, where they are not NaN, the accuracy and the mean IoU.
func metricsText(m train.Metrics) string {
	if math.IsNaN(m.Accuracy) {
		return fmt.Sprintf("loss %.4g", m.Loss)
	}
	text := fmt.Sprintf("loss %.4g, accuracy %.1f %%", m.Loss, 100*m.Accuracy)
	if !math.IsNaN(m.MeanIoU) {
		text += fmt.Sprintf(", mean IoU %.1f %%", 100*m.MeanIoU)
	}
	return text
}

func printTraining(w io.Writer, s *recipe.Summary, out string) error {
	fmt.Fprintf(w, "%s: %d parameters, %s of %s in %s, %.0f samples/s\n", s.Name, s.Parameters, plural.Of(s.Epochs, "epoch"), plural.Of(s.Samples, "sample"),
		time.Duration(s.Seconds*float64(time.Second)).Round(time.Second), s.Rate)
	for _, part := range []struct {
		name string
		*recipe.Result
	}{{"training", &s.Train}, {"validation", s.Validation}, {"test", s.Test}} {
		if part.Result == nil {
			continue
		}
		accuracy, meanIoU := math.NaN(), math.NaN()
		if part.Accuracy != nil {
			accuracy = *part.Accuracy
		}
		if part.MeanIoU != nil {
			meanIoU = *part.MeanIoU
		}
		fmt.Fprintf(w, "  %-11s %s on %s\n", part.name, metricsText(train.Metrics{Loss: part.Loss, Accuracy: accuracy, MeanIoU: meanIoU}), plural.Of(part.Samples, "sample"))
	}
	_, err := fmt.Fprintf(w, "the network of epoch %d is %s\n", s.Kept, filepath.Join(out, s.Model))
	return err
}

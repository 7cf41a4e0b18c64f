package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/noether-ml/noether/internal/extract"
	"github.com/noether-ml/noether/internal/machine"
	"github.com/noether-ml/noether/internal/plural"
	"github.com/noether-ml/noether/internal/pooling"
	"github.com/noether-ml/noether/internal/study"
	"github.com/noether-ml/noether/internal/tempfolder"
)

type extractFlags struct {
	out, format, pool string
	vars, layers      []string
	only              []string
	force             bool
	python            pythonFlags
	observe           *observeFlags
}

func extractCommand(engine *engineFlags) *cobra.Command {
	var f extractFlags
	c := &cobra.Command{
		Use:   "extract STUDY -o DIR",
		Short: "Write the activations of a study's models on its data, clean and transformed",
		Long: `Writes what the measures of a study would read: the activations of each model at its layers, on each sample, clean and under every
transformation, value and trial. A study measures them again if a model has "activations: DIR/MODEL" in place of "onnx".
In the folder of a model, samples.csv names the samples of the rows, and activations.json lists the arrays.`,
		Example: "  noether extract study.yaml -o activations --pool mean\n" +
			"  noether extract study.yaml -o activations --layers penultimate --layers output --format npy",
		Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error { return f.run(c, args[0], engine) },
	}
	p := c.Flags()
	p.StringVarP(&f.out, "out", "o", "", "folder to write")
	p.StringVar(&f.format, "format", string(extract.Safetensors), "safetensors or parquet (a file for each view), or npy or zarr (a file or folder for each layer)")
	p.StringVar(&f.pool, "pool", "", "pool positions and tokens into one vector a sample: mean, max, class or flatten (default: whole activations)")
	p.StringArrayVar(&f.vars, "var", nil, "NAME=VALUE for ${NAME} in the study; may be repeated")
	p.StringArrayVar(&f.layers, "layers", nil, "layers in place of the study's: all, op:TYPE, a glob on tensor names, residual, penultimate, output; may be repeated")
	p.StringArrayVar(&f.only, "only", nil, "only this model; may be repeated")
	p.BoolVar(&f.force, "force", false, "replace an existing folder")
	f.python.add(p)
	f.observe = addObserveFlags(c)
	return c
}

func (f *extractFlags) run(c *cobra.Command, path string, engine *engineFlags) error {
	if f.out == "" {
		return usagef(c, "-o names no folder to write")
	}
	if !slices.Contains(extract.Formats(), extract.Format(f.format)) {
		return usagef(c, "--format is %q: it must be safetensors, npy, parquet or zarr", f.format)
	}
	if f.pool != "" && !slices.Contains(pooling.Kinds(), pooling.Kind(f.pool)) {
		return usagef(c, "--pool is %q: it must be mean, max, class or flatten", f.pool)
	}
	if entries, err := os.ReadDir(f.out); !f.force && (err == nil && len(entries) > 0 || err != nil && !errors.Is(err, fs.ErrNotExist)) {
		return fmt.Errorf("%s exists: --force replaces it", f.out)
	}
	s, err := loadStudy(c, path, f.vars, "")
	if err != nil {
		return f.observe.logged(err)
	}
	for i := range s.Models {
		if len(f.layers) > 0 {
			s.Models[i].Layers = f.layers
		}
	}
	stopPython, err := f.python.start(c.Context(), s)
	if err != nil {
		return f.observe.logged(err)
	}
	defer stopPython()
	o, err := engine.open()
	if err != nil {
		return f.observe.logged(err)
	}
	o.Free, o.FailFast, o.AllowEmpty, o.Only = machine.FreeMemory(), true, true, f.only
	stop, err := f.observe.start(c, &o)
	if err != nil {
		return err
	}
	return stop(f.extract(c.Context(), s, o))
}

func (f *extractFlags) extract(ctx context.Context, s *study.Study, o study.Options) error {
	plan, err := study.NewPlan(ctx, s, o)
	if err != nil {
		return err
	}
	defer plan.Close()
	return f.write(ctx, plan, o)
}

// write writes to a folder beside the one to write, which is then renamed. It also removes such
// folders of killed processes.
func (f *extractFlags) write(ctx context.Context, plan *study.Plan, o study.Options) error {
	out := filepath.Clean(f.out)
	if err := os.MkdirAll(filepath.Dir(out), 0o777); err != nil {
		return err
	}
	files, remove, err := tempfolder.Beside(out)
	if err != nil {
		return err
	}
	defer remove()
	var writers []*extract.Writer
	var sources []study.Source
	done := showOrLogProgress(&o)
	err = study.Extract(ctx, plan, o, pooling.Kind(f.pool), func(source study.Source) (study.Sink, error) {
		w, err := extract.NewWriter(filepath.Join(files, f.folder(plan, source)), extract.Options{Format: extract.Format(f.format), Pool: pooling.Kind(f.pool)},
			source.Layers, append([]string{""}, source.Views...), source.Samples)
		if err != nil {
			return nil, err
		}
		writers, sources = append(writers, w), append(sources, source)
		return w, nil
	})
	done()
	if ctx.Err() != nil {
		return errors.New("stopped; nothing was written")
	}
	if err != nil {
		return err
	}
	if len(writers) == 0 {
		return errors.New("the study selects no layers: set layers: of its models, or --layers")
	}
	if err := replaceFolder(out, files, f.force); err != nil {
		return err
	}
	for i, w := range writers {
		source := sources[i]
		fmt.Fprintf(stdout, "wrote %s: %s, %s, %s\n", filepath.Join(out, f.folder(plan, source)), plural.Of(w.Rows(), "sample"),
			plural.Of(len(source.Layers), "layer"), plural.Of(1+len(source.Views), "view"))
		if missing := source.Samples - w.Rows(); missing > 0 {
			o.Warnf("%s of data %s could not be read and have no row: see samples.csv", plural.Of(missing, "sample"), source.Data)
		}
		if len(w.NonFinite) > 0 {
			o.Warnf("model %s has NaN or infinity at %s", source.Model, strings.Join(slices.Sorted(maps.Keys(w.NonFinite)), ", "))
		}
	}
	return nil
}

// replaceFolder renames the folder from to to. A folder that is there must be empty unless force is
// set; its files are left in from + ".old".
func replaceFolder(to, from string, force bool) error {
	replace := os.Remove
	if force {
		replace = func(path string) error { return os.Rename(path, from+".old") }
	}
	if err := replace(to); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Rename(from, to)
}

// folder returns the folder of a model: MODEL, or DATA/MODEL if there are several data sets.
func (f *extractFlags) folder(plan *study.Plan, source study.Source) string {
	model := filepath.Base(defaultFolder(source.Model))
	if len(plan.Study.Data) == 1 {
		return model
	}
	return filepath.Join(filepath.Base(defaultFolder(source.Data)), model)
}

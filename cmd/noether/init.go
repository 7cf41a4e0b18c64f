package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/engine"
	"github.com/noether-ml/noether/engine/ort"
	"github.com/noether-ml/noether/internal/atomicfile"
	"github.com/noether-ml/noether/internal/blocks"
	"github.com/noether-ml/noether/internal/fetch/uri"
	"github.com/noether-ml/noether/internal/model"
	"github.com/noether-ml/noether/internal/plural"
	"github.com/noether-ml/noether/internal/study/open"
	"github.com/noether-ml/noether/internal/study/spec"
	"github.com/noether-ml/noether/tensor"
)

func initCommand(engine *engineFlags) *cobra.Command {
	var out string
	var force, asJSON bool
	c := &cobra.Command{
		Use:     "init MODEL DATA",
		Short:   "Write a commented study file for a model and data",
		Example: "  noether init resnet18.onnx photos/ -o study.yaml",
		Args:    usageArgs(cobra.ExactArgs(2)),
		RunE: func(c *cobra.Command, args []string) error {
			info, err := inspectForStudy(c.Context(), engine, args[0], args[1], filepath.Dir(out))
			if err != nil {
				return err
			}
			note("timing the model")
			text, err := limitFirstRun(c.Context(), engine, &info, filepath.Dir(out))
			if err != nil {
				return err
			}
			if out == "" || out == "-" {
				if asJSON {
					return json.NewEncoder(os.Stdout).Encode(initOutput{Study: text})
				}
				_, err = fmt.Fprint(os.Stdout, text) // a file, whose names are quoted where they must be
				return err
			}
			if _, err := os.Stat(out); err == nil && !force {
				return fmt.Errorf("%s exists: --force overwrites it", out)
			}
			err = atomicfile.WriteFunc(out, func(w io.Writer) error {
				_, err := io.WriteString(w, text)
				return err
			})
			switch {
			case err != nil:
			case asJSON:
				err = json.NewEncoder(os.Stdout).Encode(initOutput{out, text})
			default:
				fmt.Fprintf(stdout, "wrote %s; next: noether run %s --dry-run\n", out, out)
			}
			return err
		},
	}
	c.Flags().StringVarP(&out, "out", "o", "", "output file (default: standard output)")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON with the name of the file and its text")
	c.Flags().BoolVar(&force, "force", false, "overwrite an existing file")
	return c
}

type initOutput struct {
	File  string `json:"file,omitempty"` // "" if it is only printed
	Study string `json:"study"`          // the text
}

// inspectForStudy determines layers, preprocessing, kind of data and classes. address is a path or
// URL. Paths in the result are relative to the folder of the study.
func inspectForStudy(ctx context.Context, engine *engineFlags, address, dataPath, folder string) (templateInfo, error) {
	localData, err := open.UnpackedData(ctx, dataPath)
	if err != nil {
		return templateInfo{}, err
	}
	data, arrays, err := openForStudy(ctx, localData)
	if err != nil {
		return templateInfo{}, err
	}
	defer func() { dataset.Close(data) }() // data are only read
	table := ""
	if len(data.Classes()) == 0 && localData == dataPath {
		path, labelled, err := open.LabelTable(ctx, localData)
		switch {
		case err != nil:
			note(fmt.Sprintf("no labels: %v", err))
		case labelled != nil:
			dataset.Close(data)
			data, table = labelled, relative(folder, path)
		}
	}
	modelPath, err := open.ModelFile(ctx, address, note)
	if err != nil {
		return templateInfo{}, err
	}
	o, err := engine.open()
	if err != nil {
		return templateInfo{}, err
	}
	rate := open.RateOf(localData) // 0: the data are not audio
	var sizes imageSizes
	candidates := [][2]int{{224, 224}} // sizes of the images, for a model of free size
	if rate == 0 && arrays == nil {
		if sizes, err = sizesOf(ctx, data); err != nil {
			return templateInfo{}, err
		}
		candidates = sizes.candidates()
	}
	// Samples is the length of the audio for a model that takes any length: one second.
	net, err := o.Runtime.OpenNetwork(modelPath, ort.NetworkOptions{Threads: o.Threads, Device: o.Device})
	if err != nil {
		return templateInfo{}, err
	}
	// What a processor of audio computes, such as a spectrogram, is part of what the model takes.
	var preprocess model.Preprocess
	var processor error
	resampled := false
	if beside := open.PreprocessorConfig(modelPath); beside != "" && rate > 0 {
		if preprocess, _, processor = open.PreprocessFor(beside, modelPath); processor != nil {
			preprocess = model.Preprocess{}
		}
		if of := preprocess.Frame.Rate; of > 0 && of != rate {
			rate, resampled = of, true
		}
	}
	options := model.Options{Layers: []string{"all"}, Size: candidates[0], Samples: rate, Preprocess: preprocess, Arrays: arrays}
	m, err := model.Open(ctx, net, options)
	if err != nil && processor != nil && ctx.Err() == nil {
		return templateInfo{}, processor
	}
	inputs := ""
	if missing := (*model.MissingInputs)(nil); errors.As(err, &missing) {
		for name := range missing.Values {
			switch {
			case model.IsRate(name) && rate > 0:
				missing.Values[name] = []float64{float64(rate)}
			case model.IsLength(name) && rate > 0:
				missing.Values[name] = []float64{float64(rate)} // of a second
			}
		}
		options.Inputs, inputs = missing.Values, missing.Setting()
		m, err = model.Open(ctx, net, options)
	}
	guessedLength := false
	for _, n := range []int{512, 256} { // windows that networks of audio take one at a time
		if err == nil || rate == 0 || ctx.Err() != nil {
			break
		}
		options.Samples = n
		if other, failed := model.Open(ctx, net, options); failed == nil {
			m, err, guessedLength = other, nil, true
		}
	}
	for _, size := range candidates[1:] {
		if err == nil || rate > 0 || ctx.Err() != nil || !slices.ContainsFunc(net.Metadata().Inputs, isFreeImage) {
			break
		}
		options.Size = size
		if other, failed := model.Open(ctx, net, options); failed == nil {
			m, err = other, nil
		}
	}
	if err != nil {
		return templateInfo{}, err
	}
	if m.TakesAudio() != (rate > 0) {
		return templateInfo{}, fmt.Errorf("%s takes %s, which %s does not contain", address, takes(m), dataPath)
	}
	labels := data.Classes()
	names, err := m.ClassNames()
	if err != nil {
		note(err.Error())
	}
	layers, chosen := layersOf(m)
	// UnknownOutputs: which of the model's outputs belong to the labels cannot be inferred.
	g := templateInfo{
		Samples: data.Len(), Inputs: inputs, GuessedLength: guessedLength, Resampled: resampled,
		Name: fileName(address), Model: relative(folder, address), Data: relative(folder, dataPath), LocalData: localData, Table: table,
		Classes: m.Classes(), Channels: m.Frame().Channels, Rate: rate, Length: m.Frame().Length, Layers: layers,
		Labels: labels, UnknownOutputs: m.Classes() > 0 && len(labels) > 0 && !spec.HasOutputs(labels, m.Classes(), names),
	}
	// Kind is what outputs encode, such as boxes, and Layout how, such as yolov8.
	if f, _ := m.Decoded(); f != nil {
		g.Decoded = fmt.Sprintf("{%s: %s}", f.Kind, f.Layout)
	}
	for _, l := range m.Layers() {
		g.Space = g.Space || strings.ContainsAny(string(l.Axes), "HT") // height, or time or tokens
	}
	if rate == 0 {
		g.Positions = seisPositions(chosen, min(data.Len(), 1000)) // the study reads at most 1000
	}
	if maps := dataset.MapsOf(arrays); maps != nil {
		g.Maps, g.Square = true, maps[1] == maps[2]
	} else if rate == 0 {
		if g.Preprocess, g.Recorded, err = recordedPreprocess(m, sizes); err != nil {
			return templateInfo{}, err
		}
		if !g.Recorded {
			g.Preprocess = guessPreprocess(m, sizes, options.Size)
		}
		if n := m.Normalisation(); n != nil {
			g.Normalises = fmt.Sprintf("subtract %s and divide by %s", perChannel(n.Mean), perChannel(n.Std))
		}
	}
	if beside := open.PreprocessorConfig(modelPath); beside != "" && arrays == nil {
		g.Preprocess, g.PreprocessIsFile = beside, true
		if uri.IsURL(address) {
			g.Preprocess = filepath.Base(beside) + " of the repository"
		}
	}
	return g, nil
}

// openForStudy opens data. Arrays that hold no images, such as videos, are read as the model takes
// them, and described.
func openForStudy(ctx context.Context, path string) (dataset.Source, []dataset.Array, error) {
	data, err := open.OpenPath(ctx, path)
	if kind, _ := open.GuessKind(path); err == nil || kind != "arrays" {
		return data, nil, err
	}
	raw, rawErr := dataset.OpenRawArrays(ctx, dataset.RawArraysOptions{Inputs: path})
	if rawErr != nil {
		return nil, nil, err
	}
	s, rawErr := dataset.Describe(ctx, raw, 0)
	if rawErr != nil || dataset.MapsOf(s.Arrays) == nil {
		dataset.Close(raw) // it was only read
		return nil, nil, fmt.Errorf("%w; no transformation applies to such arrays, so that a study of them has pairs of arrays, which init does not write", err)
	}
	return raw, s.Arrays, nil
}

// isFreeImage reports whether an input may take images of more than one size.
func isFreeImage(p engine.Port) bool {
	return len(p.Shape) == 4 && slices.ContainsFunc(p.Shape[1:], func(d engine.Dim) bool { return d.Size < 0 })
}

// layersOf chooses the ends of the model's blocks and the input of its classifier or, without
// these, all layers. out are their entries in the file, with comments.
func layersOf(m *model.Model) (out []templateLayer, chosen []tensor.Layer) {
	for _, l := range blocks.Choose(m.Graph(), m.Input().Name, m.Output(), m.Layers()) {
		out = append(out, templateLayer{Pattern: l.Name, Comment: fmt.Sprintf("%s (%s)", l.Role, extent(l.Layer))})
		chosen = append(chosen, l.Layer)
	}
	if len(out) == 0 {
		out = append(out, templateLayer{Pattern: "all", Comment: "every tensor"})
		chosen = m.Layers()
	}
	return out, chosen
}

func extent(l tensor.Layer) string {
	size := func(i int) int { return l.Shape[i-1] } // Shape, unlike Axes, omits the batch axis
	switch l.Axes {
	case "NCHW":
		return fmt.Sprintf("%d x %d, %s", size(2), size(3), plural.Of(size(1), "channel"))
	case "NHWC":
		return fmt.Sprintf("%d x %d, %s", size(1), size(2), plural.Of(size(3), "channel"))
	case "NTC":
		return plural.Of(size(1), "token") + ", " + plural.Of(size(2), "channel")
	case "NCT":
		return fmt.Sprintf("length %d, %s", size(2), plural.Of(size(1), "channel"))
	case "NC":
		return plural.Of(size(1), "value")
	}
	return sizes(l.Shape)
}

// relative returns a path relative to a folder. Absolute paths and URLs are returned unchanged.
func relative(folder, path string) string {
	if filepath.IsAbs(path) || uri.IsURL(path) {
		return path
	}
	from, err := filepath.Abs(folder)
	if err != nil {
		return path
	}
	to, err := filepath.Abs(path)
	if err != nil {
		return path
	}
	if r, err := filepath.Rel(from, to); err == nil {
		return r
	}
	return to
}

package main

import (
	"errors"
	"fmt"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/noether-ml/noether/engine/ort"
	"github.com/noether-ml/noether/internal/accel"
	"github.com/noether-ml/noether/internal/blas"
	"github.com/noether-ml/noether/internal/catalog"
	"github.com/noether-ml/noether/internal/machine"
	"github.com/noether-ml/noether/internal/train/recipe"
	"github.com/noether-ml/noether/internal/turbojpeg"
	"github.com/noether-ml/noether/internal/webp"
)

// A component is a library or property of the machine: one line of the output of doctor.
type component struct {
	What    string `json:"what"`
	Found   string `json:"found,omitempty"`
	Install string `json:"mend,omitempty"` // how to install it, if it is missing
	Warning string `json:"warning,omitempty"`
	Needed  bool   `json:"needed"` // the program does not work without it
}

func doctorCommand(engine *engineFlags) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Print which libraries and programs this machine has, and how to install missing ones",
		Args:  usageArgs(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			found := examine(engine)
			if err := show(asJSON, found, func() error { return printFindings(found) }); err != nil {
				return err
			}
			for _, f := range found {
				if f.Needed && f.Found == "" {
					return errors.New(f.What + " is missing: " + f.Install)
				}
			}
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func examine(engine *engineFlags) []component {
	return []component{
		{What: "noether", Found: fmt.Sprintf("%s, %s, %s/%s", version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)},
		examineCommand(),
		examineRuntime(engine),
		examineDevices(engine),
		examineAcceleration(engine),
		examineBLAS(),
		examineJPEG(),
		examineWebP(),
		{What: "cores", Found: fmt.Sprint(machine.Cores())},
		{What: "memory", Found: examineMemory()},
	}
}

func examineMemory() string {
	limit := machine.MemoryLimit()
	if limit == 0 {
		return "no limit"
	}
	return mebibytes(limit) + " limit"
}

func examineRuntime(engine *engineFlags) component {
	f := component{What: "ONNX Runtime", Needed: true}
	path, _, err := ort.FindFor(engine.library, engine.device)
	if err != nil {
		f.Install = err.Error()
		return f
	}
	rt, err := ort.Load(path)
	if err != nil {
		f.Install = err.Error()
		return f
	}
	f.Found = fmt.Sprintf("%s at %s", rt.Version(), path)
	return f
}

// examineDevices lists the devices that --device may name, and what auto stands for.
func examineDevices(engine *engineFlags) component {
	f := component{What: "devices"}
	rt, err := engine.load()
	if err != nil {
		f.Install = "see ONNX Runtime"
		return f
	}
	var names []string
	for _, d := range rt.Devices() {
		names = append(names, d.String())
	}
	f.Found = fmt.Sprintf("%s; auto is %s", strings.Join(names, ", "), rt.Resolve(ort.Auto))
	return f
}

func examineAcceleration(engine *engineFlags) component {
	state := fmt.Sprintf("on, with vectors of %d floats", accel.Width())
	switch {
	case !accel.Included:
		state = "not included in this program (built with the tag noaccel, or not for amd64)"
	case accel.Width() == 0:
		state = "off: this processor lacks AVX2"
	case !engine.accelerate:
		state = "off (--accelerate=false)"
	}
	return component{What: "acceleration", Found: state}
}

func examineBLAS() component {
	library := blas.Load()
	if library.Hint != "" {
		return component{What: "BLAS", Install: strings.TrimSpace(library.Hint + " (without it, linear algebra is several times slower) " + library.Problem)}
	}
	return component{What: "BLAS", Found: strings.TrimSpace(library.String() + " " + library.Version)}
}

func examineJPEG() component {
	path, err := turbojpeg.Find()
	if err != nil {
		return component{What: "libjpeg-turbo", Install: turbojpeg.Hint() + " (without it, JPEG images are read at less than half the speed)"}
	}
	return component{What: "libjpeg-turbo", Found: path}
}

func examineWebP() component {
	path, err := webp.Find()
	if err != nil {
		return component{What: "libwebp", Install: webp.Hint() + " (without it, WebP images are decoded at half the speed)"}
	}
	return component{What: "libwebp", Found: path}
}

func printFindings(found []component) error {
	for _, f := range found {
		text := f.Found
		if text == "" {
			text = "missing: " + f.Install
		}
		if f.Warning != "" {
			text += " (warning: " + f.Warning + ")"
		}
		fmt.Fprintf(stdout, "%-13s %s\n", f.What, text)
	}
	return nil
}

func schemaCommand() *cobra.Command {
	var ofTraining bool
	c := &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of study files, for editors",
		Args:  usageArgs(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			schema := catalog.Schema
			if ofTraining {
				schema = recipe.Schema
			}
			raw, err := schema()
			if err == nil {
				_, err = fmt.Fprintln(stdout, string(raw))
			}
			return err
		},
	}
	c.Flags().BoolVar(&ofTraining, "training", false, "print the schema of training files")
	return c
}

package firing_test

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/model"
	"github.com/noether-ml/noether/internal/model/modeltest"
	"github.com/noether-ml/noether/internal/procedure"
	"github.com/noether-ml/noether/internal/procedure/firing"
	"github.com/noether-ml/noether/internal/testdata"
	"github.com/noether-ml/noether/tensor"
	"github.com/noether-ml/noether/transform"
)

// golden holds the values that testdata/golden.py computed with numpy and PyTorch. A unit is one
// value of a layer. It fires where sign times value reaches a threshold. Global is the fraction of
// the inputs at which it fires, Local the fraction of the images on trajectories (versions of the
// inputs that activate it most), and Score is Local / Global.
type golden struct {
	Units  []map[string]struct{ Sign, Threshold, Global, Local, Score float64 } // by factor: phase, orientation
	Layers map[string]map[string]float64                                        // by layer and statistic
}

func readGolden(t *testing.T) golden {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", "golden.json"))
	var g golden
	if err == nil {
		err = json.Unmarshal(raw, &g)
	}
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// The scores of units at every depth of a ResNet-20 on the gratings of Goodfellow et al. (2009)
// agree with numpy. Both implementations use the same activations, rounded to 16 bits.
func TestUnitsGolden(t *testing.T) {
	t.Parallel()
	g := readGolden(t)
	raw, err := os.ReadFile(filepath.Join("testdata", "gratings.bin"))
	if err != nil {
		t.Fatal(err)
	}
	// value returns the activation of unit u on a grating. raw is an array of little-endian int16:
	// units x 4 frequencies (2, 4, 6, 8) x 80 orientations (steps of 4.5 degrees) x 21 phases
	// (steps of pi / 20).
	value := func(u int, g dataset.Grating) float64 {
		f, o, p := int(g.Frequency)/2-1, int(math.Round(orientation(g)/4.5))%80, int(math.Round(g.Phase/(math.Pi/20)))
		return float64(int16(binary.LittleEndian.Uint16(raw[2*(((u*4+f)*80+o)*21+p):])))
	}
	var units []func(dataset.Grating) float64
	for u := range g.Units {
		units = append(units, func(g dataset.Grating) float64 { return value(u, g) })
	}
	base, err := dataset.OpenGratings(dataset.GratingsOptions{Size: 8}) // of any size: activations are stored
	if err != nil {
		t.Fatal(err)
	}
	s := firing.Defaults()
	s.References = 1 // trajectories: that of the one input that activates the unit most
	// respond returns the values of units on the gratings of base and on those of trajectories.
	for name, trajectories := range map[string]*dataset.GratingTrajectories{"phase": base.AlongPhase(), "orientation": base.AlongOrientation()} {
		got, err := firing.ScoreUnits(respond(trajectories, base.Len(), units...), s)
		if err != nil {
			t.Fatal(err)
		}
		for u, unit := range got {
			want := g.Units[u][name]
			if unit.Sign != int(want.Sign) || float64(unit.Sign)*unit.Threshold != want.Threshold || math.Abs(unit.Global-want.Global) > 1e-12 ||
				math.Abs(unit.Local-want.Local) > 1e-12 || math.Abs(unit.Score-want.Score) > 1e-9 {
				t.Errorf("unit %d along %s: %+v, want %+v", u, name, unit, want)
			}
		}
	}
}

// The scores of layers of a ResNet-20 under quarter turns of CIFAR-10 images agree with numpy, and
// their variances with tmeasures, the library of Quiroga et al. (2019, 2020). Each implementation
// runs the network itself, so that a unit at its threshold may fire in one and not in the other.
func TestLayersGolden(t *testing.T) {
	t.Parallel()
	g := readGolden(t)
	data, err := dataset.OpenCIFAR10(t.Context(), dataset.CIFAROptions{Paths: []string{testdata.Path(t, "cifar10", "test_batch.bin")}})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for name := range g.Layers {
		names = append(names, name)
	}
	m, err := modeltest.Open(t, testdata.Path(t, "models", "resnet20-cifar10.onnx"), model.Options{Layers: names,
		Preprocess: model.Preprocess{Mean: []float32{0.485, 0.456, 0.406}, Std: []float32{0.229, 0.224, 0.225}}})
	if err != nil {
		t.Fatal(err)
	}
	s := firing.Defaults()
	s.Also = []string{firing.Variance, firing.SameEquivariance, firing.NormalThreshold, firing.MutualInformation}
	// A job is one run of the measure on a model and its data: 200 images in the random order of
	// seed 4, each rotated by every angle.
	j := newJob(m, dataset.Shuffle(dataset.Limit(data, 200), 4), nil)
	j.Units, j.Curves, j.Transform = nil, nil, &procedure.Transform{Name: "quarter"}
	for _, angle := range []float64{90, 180, 270} {
		j.Transform.Values = append(j.Transform.Values, procedure.Value{Transform: transform.Rotate{Angle: transform.Fixed(angle)}})
	}
	scores := runJob(t, s, j)
	for layer, l := range m.Layers() {
		for statistic, want := range g.Layers[l.Name] {
			got := find(t, scores, layer, "", statistic).Value
			tolerance := 1e-6
			switch statistic {
			case "invariance", "goodfellow-normal", "mutual-information":
				// On other processors one unit in a thousand may differ by rounding.
				tolerance = 1e-3
			}
			if math.Abs(got-want) > tolerance*math.Abs(want) {
				t.Errorf("%s of %s is %v, want %v", statistic, l.Name, got, want)
			}
		}
		if len(g.Layers[l.Name]) < 6 || tensor.Size(l.Shape) == 0 {
			t.Errorf("layer %s has %d golden values, want 6 or more", l.Name, len(g.Layers[l.Name]))
		}
	}
}

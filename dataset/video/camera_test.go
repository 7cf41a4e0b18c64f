package video

import (
	"math"
	"strings"
	"testing"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/testdata"
	"github.com/noether-ml/noether/tensor"
)

// TestOrbitInvertsTheProjection checks orbit, which maps a pixel of a frame to the point of the
// image that it shows. The inverse is computed here: points of a plane that is rotated by angle
// degrees about an axis within it are projected onto the frame. axis is the direction of the axis
// in radians.
func TestOrbitInvertsTheProjection(t *testing.T) {
	t.Parallel()
	const f = 277.0 // focal length, in pixels
	for _, angle := range []float64{-40, 0, 15} {
		for _, axis := range []float64{0, 1, 2.5} {
			sin, cos := math.Sincos(angle * math.Pi / 180)
			dy, dx := math.Sincos(axis)
			for _, p := range [][2]float64{{0, 0}, {30, -20}, {-80, 50}} {
				// Rodrigues' formula rotates (p, 0) about the axis (dx, dy, 0). The result is moved
				// away from the camera by f.
				dot := p[0]*dx + p[1]*dy
				// The third component of the cross product of the axis and the point.
				cross := dx*p[1] - dy*p[0]
				x := p[0]*cos + dx*dot*(1-cos)
				y := p[1]*cos + dy*dot*(1-cos)
				z := f + cross*sin
				u, v, _ := orbit(sin, cos, dx, dy, f)(f*x/z, f*y/z)
				if math.Hypot(u-p[0], v-p[1]) > 1e-9 {
					t.Errorf("%g degrees about the axis at %g: the pixel that shows %v is mapped to %g, %g", angle, axis, p, u, v)
				}
			}
		}
	}
}

// ramp returns an oversampled image with the values 0.5 + (x + 2 y) / 1000, where x and y are the
// distances from its centre in pixels of the frame.
func ramp(side int) tensor.Tensor {
	t := tensor.New(1, side, side)
	for i := range side {
		for j := range side {
			x, y := (float64(j)+0.5-float64(side)/2)/oversampling, (float64(i)+0.5-float64(side)/2)/oversampling
			t.Data[i*side+j] = float32(0.5 + (x+2*y)/1000)
		}
	}
	return t
}

// TestFramesShowTheView checks on a linear ramp that each pixel of a frame has the value of the
// image at the point to which the view (the map from frame to image) maps the pixel. Pan moves the
// camera sideways, turn rotates it about the viewing direction, and still has one frame.
func TestFramesShowTheView(t *testing.T) {
	t.Parallel()
	for _, motion := range []string{"pan", "turn", "still"} {
		// complete sets the options that are left out to their defaults.
		o, err := CameraOptions{Motion: motion, Patches: Patches{Width: 24, Height: 16, Size: 4}}.complete()
		if err != nil {
			t.Fatal(err)
		}
		// After a pan by 3 pixels in the direction 0.7 radians, or a turn by 3 degrees.
		view := o.motion(3, 0.7, nil)
		frame := o.render(ramp(120), view)
		for i, v := range frame.Data {
			x, y, _ := view(float64(i%24)+0.5-12, float64(i/24)+0.5-8)
			if want := 0.5 + (x+2*y)/1000; math.Abs(float64(v)-want) > 1e-6 {
				t.Fatalf("%s: pixel %d is %g, want %g", motion, i, v, want)
			}
		}
	}
}

// TestPanIsATranslation checks that after a pan by whole pixels the frame is the middle frame,
// which shows the image unmoved, shifted by these pixels.
func TestPanIsATranslation(t *testing.T) {
	t.Parallel()
	o, err := CameraOptions{Motion: "pan", Patches: Patches{Width: 40, Height: 40}}.complete()
	if err != nil {
		t.Fatal(err)
	}
	texture := tensor.New(1, 100, 100)
	for i := range texture.Data {
		texture.Data[i] = float32(i*i%97) / 97
	}
	middle, panned := o.render(texture, o.motion(0, 0, nil)), o.render(texture, o.motion(3, 0, nil))
	for y := range 40 {
		for x := range 36 {
			if got, want := panned.Data[y*40+x], middle.Data[y*40+x+3]; math.Abs(float64(got-want)) > 1e-6 {
				t.Fatalf("pixel %d, %d is %g, but three pixels to the right in the middle frame it is %g", x, y, got, want)
			}
		}
	}
}

func TestMirrored(t *testing.T) {
	t.Parallel()
	// The indices 0 1 2 of three pixels, continued by reflection from -7 on.
	for i, want := range []int{0, 0, 1, 2, 2, 1, 0, 0, 1, 2, 2, 1, 0, 0} {
		if got := mirrored(i-7, 3); got != want {
			t.Errorf("mirrored(%d, 3) = %d, want %d", i-7, got, want)
		}
	}
}

// TestCameraOverRealImages checks the values of the patches, and the number of samples of a
// trajectory: the patches at one place of all frames. A still camera has one frame and so none.
func TestCameraOverRealImages(t *testing.T) {
	t.Parallel()
	images, err := dataset.OpenFolder(t.Context(), dataset.FolderOptions{Dir: testdata.Path(t, "imagenet-samples")})
	if err != nil {
		t.Fatal(err)
	}
	for motion, amounts := range map[string]int{"pan": 11, "turn": 11, "orbit": 11, "object": 11, "still": 0} {
		src, err := OpenCamera(t.Context(), CameraOptions{Images: dataset.Limit(images, 1), Motion: motion, Frames: 11, Patches: Patches{Places: 5}})
		if err != nil {
			t.Fatal(err)
		}
		defer src.Close()
		if got := len(dataset.Amounts(src)); got != amounts {
			t.Errorf("%s: trajectories of %d samples, want %d", motion, got, amounts)
		}
		seen := map[float32]bool{}
		for i := range src.Len() {
			for _, v := range patch(t, src, i).Input.Data {
				if v < 0 || v > 1 {
					t.Fatalf("%s: sample %d has the value %g outside [0, 1]", motion, i, v)
				}
				seen[v] = true
			}
		}
		if len(seen) < 100 {
			t.Errorf("%s: patches hold %d different values, want at least 100", motion, len(seen))
		}
	}
}

func TestOpenCameraErrors(t *testing.T) {
	t.Parallel()
	shapes, err := dataset.OpenShapes(dataset.ShapesOptions{N: 1, Size: 32})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		o    CameraOptions
		want string
	}{
		{CameraOptions{Images: shapes, Motion: "zoom"}, "pan, turn, orbit, object or still"},
		{CameraOptions{Motion: "pan"}, "no images"},
		{CameraOptions{Images: shapes, Motion: "pan", Frames: 1}, "there is only one frame"},
		// Degrees from the middle frame.
		{CameraOptions{Images: shapes, Motion: "orbit", Frames: 200}, "for at most 50"},
		{CameraOptions{Images: shapes, Motion: "pan", Patches: Patches{Size: 200}}, "patches of 200 pixels do not fit"},
		{CameraOptions{Images: shapes, Motion: "turn", Speed: math.NaN()}, "at a speed of NaN"},
	} {
		if _, err := OpenCamera(t.Context(), c.o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: error %v, want one with %q", c.o.Motion, err, c.want)
		}
	}
}

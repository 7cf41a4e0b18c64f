package video

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"iter"
	"math"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/seed"
	"github.com/noether-ml/noether/tensor"
)

// CameraOptions says how a camera moves over still images.
type CameraOptions struct {
	// Images are the stills; each becomes a scene.
	Images dataset.Source `json:"-"`
	// Motion is "pan", sideways in a direction drawn for each image; "turn", about the line of
	// sight; "orbit", around the image, whose plane turns about an axis within it, drawn for each
	// image, and is seen in perspective, 60 degrees along the longer side; or "still", one frame of
	// each image, without trajectories.
	Motion string
	// Frames of each scene; 0: 31. The frame in the middle shows the image as it is.
	Frames int
	// Speed is in pixels (pan) or degrees (turn, orbit) a frame; 0: 2 pixels, 4 degrees, 3 degrees.
	// Which way is drawn.
	Speed float64
	// Crop within Patches is twice the patch's side for turn and orbit where it is 0: away from the
	// middle these are mostly translations.
	Patches
}

// OpenCamera makes videos of still images.
func OpenCamera(ctx context.Context, o CameraOptions) (*Source, error) {
	src, err := openCamera(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("moving a camera: %w", err)
	}
	return src, nil
}

func (o CameraOptions) complete() (CameraOptions, error) {
	o.Patches = o.Patches.complete()
	if o.Frames == 0 {
		o.Frames = 31
	}
	speed, crop := 0.0, 2*o.Size
	switch o.Motion {
	case "pan":
		speed, crop = 2, 0
	case "turn":
		speed = 4
	case "orbit":
		speed = 3
	case "still":
		o.Frames, o.Speed, crop = 1, 0, 0
	default:
		return o, fmt.Errorf("motion %q is not known: pan, turn, orbit or still", o.Motion)
	}
	if o.Speed == 0 {
		o.Speed = speed
	}
	if o.Crop == 0 {
		o.Crop = crop
	}
	return o, o.Patches.check()
}

func openCamera(ctx context.Context, o CameraOptions) (*Source, error) {
	o, err := o.complete()
	if err != nil {
		return nil, err
	}
	farthest := math.Abs(o.Speed) * float64(o.Frames-1) / 2
	switch {
	case o.Images == nil || o.Images.Len() == 0:
		return nil, fmt.Errorf("there are no images")
	case o.Frames < 1 || o.Frames > 1<<20 || math.IsNaN(farthest) || math.IsInf(farthest, 0):
		return nil, fmt.Errorf("%d frames of an image, at a speed of %g: take 1 to %d", o.Frames, o.Speed, 1<<20)
	case o.Motion == "orbit" && farthest > 50:
		return nil, fmt.Errorf("%d frames at %g degrees lead %g degrees around the picture: from 50 on it is seen from its edge", o.Frames, o.Speed, farthest)
	}
	if o.Motion != "still" {
		if err := o.checkWindow(o.Frames); err != nil {
			return nil, err
		}
	}
	clips := make([]clip, o.Images.Len())
	for i := range clips {
		clips[i] = o.clip(ctx, i)
	}
	src, err := build(ctx, o.Patches, 2, 0, clips)
	if err != nil {
		return nil, err
	}
	src.still = o.Motion == "still"
	text, err := json.Marshal(o)
	if err != nil {
		src.Close()
		return nil, err
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "camera %d %s %s", version, text, o.Images.Fingerprint()))
	src.fingerprint = hex.EncodeToString(sum[:])
	return src, nil
}

// clip is the camera's way over image i.
func (o CameraOptions) clip(ctx context.Context, i int) clip {
	name := fmt.Sprintf("image %d", i)
	if s, err := dataset.Describe(ctx, o.Images, i); err == nil {
		name = s.Name
	}
	return clip{name: name, frames: func(ctx context.Context) iter.Seq2[tensor.Tensor, error] {
		return func(yield func(tensor.Tensor, error) bool) {
			s, err := o.Images.At(ctx, i, dataset.Frame{Channels: o.Channels})
			if err == nil {
				s.Input, err = o.canvas(s.Input)
			}
			if err != nil {
				yield(tensor.Tensor{}, err)
				return
			}
			o.film(ctx, i, s.Input, yield)
		}
	}}
}

// oversampled is how many samples a pixel of a frame is the mean of, along each side: without them
// a frame would be sharp where it falls on the image's own pixels and blurred elsewhere.
const oversampled = 2

// canvas brings an image to the size that the camera sees a part of: a quarter larger than the
// frame, and finer.
func (o CameraOptions) canvas(image tensor.Tensor) (tensor.Tensor, error) {
	h, w := image.Shape[1], image.Shape[2]
	short := covering(h, w, oversampled*o.Height*5/4, oversampled*o.Width*5/4)
	return dataset.Frame{Resize: short}.Tensor(image)
}

func (o CameraOptions) film(ctx context.Context, i int, canvas tensor.Tensor, yield func(tensor.Tensor, error) bool) {
	draw := seed.Rand(o.Seed, "video: camera", i)
	way := 2 * math.Pi * draw.Float64()
	speed := o.Speed
	if draw.IntN(2) == 1 {
		speed = -speed
	}
	for t := range o.Frames {
		if err := ctx.Err(); err != nil {
			yield(tensor.Tensor{}, err)
			return
		}
		amount := speed * (float64(t) - float64(o.Frames-1)/2)
		if !yield(o.view(canvas, o.motion(amount, way)), nil) {
			return
		}
	}
}

// A view tells which point of the image is seen at a point of the frame, both in pixels of the
// frame from the middle, y down.
type view func(x, y float64) (float64, float64)

// motion is the view after the camera has moved by an amount, in pixels or degrees.
func (o CameraOptions) motion(amount, way float64) view {
	sin, cos := math.Sincos(amount * math.Pi / 180)
	dy, dx := math.Sincos(way)
	switch o.Motion {
	case "turn":
		return func(x, y float64) (float64, float64) { return x*cos - y*sin, x*sin + y*cos }
	case "orbit":
		return orbit(sin, cos, dx, dy, float64(max(o.Width, o.Height))/2/math.Tan(math.Pi/6))
	case "pan":
		return func(x, y float64) (float64, float64) { return x + amount*dx, y + amount*dy }
	}
	return func(x, y float64) (float64, float64) { return x, y }
}

// orbit is the homography of a plane at the distance f that has turned about the axis (dx, dy)
// within it. Along the axis a point of the plane is a, across it b; turned, it lies at (a, b cos, f
// + b sin) and is seen at f / (f + b sin) times the first two.
func orbit(sin, cos, dx, dy, f float64) view {
	return func(x, y float64) (float64, float64) {
		along, across := x*dx+y*dy, y*dx-x*dy
		b := across * f / (f*cos - across*sin)
		a := along * (f + b*sin) / f
		return a*dx - b*dy, a*dy + b*dx
	}
}

// view renders a frame.
func (o CameraOptions) view(canvas tensor.Tensor, see view) tensor.Tensor {
	c, h, w := canvas.Shape[0], canvas.Shape[1], canvas.Shape[2]
	out := tensor.New(c, o.Height, o.Width)
	const share = 1.0 / (oversampled * oversampled)
	for i := range oversampled * o.Height {
		y := (float64(i)+0.5)/oversampled - float64(o.Height)/2
		for j := range oversampled * o.Width {
			x := (float64(j)+0.5)/oversampled - float64(o.Width)/2
			u, v := see(x, y)
			at := around(u*oversampled+float64(w)/2-0.5, v*oversampled+float64(h)/2-0.5, w, h)
			for k := range c {
				out.Data[(k*o.Height+i/oversampled)*o.Width+j/oversampled] += share * at.read(canvas.Data[k*h*w:(k+1)*h*w])
			}
		}
	}
	return out
}

// corners are the four pixels around a point, and their weights.
type corners struct {
	at     [4]int
	weight [4]float32
}

// around is bilinear interpolation; beyond its border the image is mirrored.
func around(x, y float64, w, h int) corners {
	fx, fy := math.Floor(x), math.Floor(y)
	p, q := float32(x-fx), float32(y-fy)
	x0, x1 := mirrored(int(fx), w), mirrored(int(fx)+1, w)
	y0, y1 := mirrored(int(fy), h)*w, mirrored(int(fy)+1, h)*w
	return corners{[4]int{y0 + x0, y0 + x1, y1 + x0, y1 + x1},
		[4]float32{(1 - q) * (1 - p), (1 - q) * p, q * (1 - p), q * p}}
}

func (c corners) read(plane []float32) float32 {
	return c.weight[0]*plane[c.at[0]] + c.weight[1]*plane[c.at[1]] + c.weight[2]*plane[c.at[2]] + c.weight[3]*plane[c.at[3]]
}

// mirrored brings a place on a side of n pixels back into it, the border pixel repeated.
func mirrored(i, n int) int {
	if i >= 0 && i < n {
		return i
	}
	i %= 2 * n
	if i < 0 {
		i += 2 * n
	}
	if i >= n {
		i = 2*n - 1 - i
	}
	return i
}

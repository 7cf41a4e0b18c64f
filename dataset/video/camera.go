package video

import (
	"cmp"
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

// CameraOptions are the options of OpenCamera.
type CameraOptions struct {
	// Images are the still images. Each becomes a scene.
	Images dataset.Source `json:"-"`
	// Motion is one of:
	//
	//	pan    sideways, in a random direction for each image
	//	turn   a rotation about the viewing direction
	//	orbit  a rotation of the image's plane about a random axis within the plane, by at most
	//	       50 degrees from the middle frame, seen in perspective: the longer side of a frame
	//	       covers 60 degrees
	//	object an object that turns in depth about a random axis within the frame, seen in the same
	//	       perspective. It is a union of ellipsoids, boxes and cylinders, drawn for each image,
	//	       with the image painted on it, lit by a lamp, before the image at rest
	//	still  one frame of each image, and so no trajectories (patches at one place in
	//	       successive frames); Frames and Speed are ignored
	Motion string
	// Frames is the number of frames of each scene; 0: 31. In the middle of the scene the camera is
	// straight in front of the image's centre.
	Frames int
	// Speed is in pixels (pan) or degrees (turn, orbit, object) per frame. 0 is 2 pixels for pan, 4
	// degrees for turn, 3 for orbit and 2 for object. Its sign is drawn at random for each image.
	Speed float64
	// Patches are the options of the frames, such as Width and Height in pixels, and of the
	// patches. Crop is the side of the central square that contains the patches. For turn, orbit
	// and object, a Crop of 0 means twice the side of a patch, because patches farther from the
	// centre mostly translate or miss the object.
	Patches
}

// OpenCamera returns patches of videos in which a camera moves over still images.
func OpenCamera(ctx context.Context, o CameraOptions) (*Source, error) {
	src, err := openCamera(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("simulating a camera: %w", err)
	}
	return src, nil
}

// complete returns the options with their defaults, or an error if they are invalid.
func (o CameraOptions) complete() (CameraOptions, error) {
	o.Patches = o.Patches.complete()
	o.Frames = cmp.Or(o.Frames, 31)
	speed, crop := 0.0, 2*o.Size
	switch o.Motion {
	case "pan":
		speed, crop = 2, 0
	case "turn":
		speed = 4
	case "orbit":
		speed = 3
	case "object":
		speed = 2
	case "still":
		o.Frames, o.Speed, crop = 1, 0, 0
	default:
		return o, fmt.Errorf("unknown motion %q: use pan, turn, orbit, object or still", o.Motion)
	}
	o.Speed = cmp.Or(o.Speed, speed)
	o.Crop = cmp.Or(o.Crop, crop)
	return o, o.Patches.check()
}

func openCamera(ctx context.Context, o CameraOptions) (*Source, error) {
	o, err := o.complete()
	if err != nil {
		return nil, err
	}
	// Pixels or degrees from the middle frame.
	farthest := math.Abs(o.Speed) * float64(o.Frames-1) / 2
	switch {
	case o.Images == nil || o.Images.Len() == 0:
		return nil, fmt.Errorf("no images")
	case o.Frames < 1 || o.Frames > 1<<20 || math.IsNaN(farthest) || math.IsInf(farthest, 0):
		return nil, fmt.Errorf("%d frames per image at a speed of %g: use 1 to %d frames and a finite speed", o.Frames, o.Speed, 1<<20)
	case o.Motion == "orbit" && farthest > 50:
		return nil, fmt.Errorf("%d frames at %g degrees turn the image by %g degrees: use fewer frames or a lower speed, for at most 50", o.Frames, o.Speed, farthest)
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
	const noCuts = 2 // no change of a histogram, at most 1, exceeds it, so a clip is one scene
	const allFrames = 0
	src, err := build(ctx, o.Patches, noCuts, allFrames, clips)
	if err != nil {
		return nil, err
	}
	src.still = o.Motion == "still"
	text, err := json.Marshal(o)
	if err != nil {
		src.Close()
		return nil, err
	}
	// version changes when the same options give different samples.
	sum := sha256.Sum256(fmt.Appendf(nil, "camera %d %s %s", version, text, o.Images.Fingerprint()))
	src.fingerprint = hex.EncodeToString(sum[:])
	return src, nil
}

// clip returns the frames of the camera's motion over image i.
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

// oversampling is the number of points per pixel of a frame, along each side, at which the image is
// read. With one, a frame would be sharp where its pixels coincide with those of the image, and
// blurred elsewhere.
const oversampling = 2

// canvas resizes an image for the camera, so that it covers at least 5/4 of the height and the
// width of a frame, in oversampled pixels. Beyond its border, render mirrors it.
func (o CameraOptions) canvas(image tensor.Tensor) (tensor.Tensor, error) {
	h, w := image.Shape[1], image.Shape[2]
	// covering returns the short side of an image of h x w that is resized to cover a given size.
	short := covering(h, w, oversampling*o.Height*5/4, oversampling*o.Width*5/4)
	return dataset.Frame{Resize: short}.Tensor(image)
}

// film yields the frames of the camera's motion over image i, given its canvas.
func (o CameraOptions) film(ctx context.Context, i int, canvas tensor.Tensor, yield func(tensor.Tensor, error) bool) {
	draw := seed.Rand(o.Seed, "video: camera", i)
	direction := 2 * math.Pi * draw.Float64()
	speed := o.Speed
	if draw.IntN(2) == 1 {
		speed = -speed
	}
	var turning object
	if o.Motion == "object" {
		turning = newObject(draw, float64(min(o.Width, o.Height)))
	}
	for t := range o.Frames {
		if err := ctx.Err(); err != nil {
			yield(tensor.Tensor{}, err)
			return
		}
		amount := speed * (float64(t) - float64(o.Frames-1)/2)
		if !yield(o.render(canvas, o.motion(amount, direction, turning)), nil) {
			return
		}
	}
}

// A view maps a point of the frame to the point (u, v) of the image that it shows, both in pixels of
// the frame from the centre, y down. brightness is that of the point, as a fraction of the image's.
type view func(x, y float64) (u, v, brightness float64)

// motion returns the view after the camera or the turning object has moved by an amount, in pixels
// for pan and otherwise in degrees. direction is that of a pan, or of the axis of an orbit or of the
// object, in radians.
func (o CameraOptions) motion(amount, direction float64, turning object) view {
	sin, cos := math.Sincos(amount * math.Pi / 180)
	dy, dx := math.Sincos(direction)
	const halfAngle = math.Pi / 6 // the longer side covers 60 degrees
	focus := float64(max(o.Width, o.Height)) / 2 / math.Tan(halfAngle)
	switch o.Motion {
	case "turn":
		return func(x, y float64) (u, v, brightness float64) { return x*cos - y*sin, x*sin + y*cos, 1 }
	case "orbit":
		return orbit(sin, cos, dx, dy, focus)
	case "object":
		return turning.turned(sin, cos, dx, dy, focus, float64(o.Width)/3)
	case "pan":
		return func(x, y float64) (u, v, brightness float64) { return x + amount*dx, y + amount*dy, 1 }
	}
	return func(x, y float64) (u, v, brightness float64) { return x, y, 1 }
}

// orbit returns the view of a plane at distance f, in pixels, that has turned about the axis (dx,
// dy) within it. sin and cos are those of the angle. A point of the plane has the coordinates a
// along the axis and b across it. After the turn it is at (a, b cos, f + b sin) in space, which the
// camera shows at (a, b cos) f / (f + b sin).
func orbit(sin, cos, dx, dy, f float64) view {
	return func(x, y float64) (u, v, brightness float64) {
		along, across := x*dx+y*dy, y*dx-x*dy
		b := across * f / (f*cos - across*sin)
		a := along * (f + b*sin) / f
		return a*dx - b*dy, a*dy + b*dx, 1
	}
}

// render returns the frame that a view shows of a canvas.
func (o CameraOptions) render(canvas tensor.Tensor, project view) tensor.Tensor {
	c, h, w := canvas.Shape[0], canvas.Shape[1], canvas.Shape[2]
	out := tensor.New(c, o.Height, o.Width)
	const weight = 1.0 / (oversampling * oversampling)
	for i := range oversampling * o.Height {
		y := (float64(i)+0.5)/oversampling - float64(o.Height)/2
		for j := range oversampling * o.Width {
			x := (float64(j)+0.5)/oversampling - float64(o.Width)/2
			u, v, brightness := project(x, y)
			share := weight * float32(brightness)
			point := cornersOf(u*oversampling+float64(w)/2-0.5, v*oversampling+float64(h)/2-0.5, w, h)
			for k := range c {
				out.Data[(k*o.Height+i/oversampling)*o.Width+j/oversampling] += share * point.read(canvas.Data[k*h*w:(k+1)*h*w])
			}
		}
	}
	return out
}

// corners are the four pixels around a point and their weights.
type corners struct {
	at     [4]int // indices into a plane of h x w
	weight [4]float32
}

// cornersOf returns the pixels and weights of bilinear interpolation at a point of an image of w x
// h pixels. The image is mirrored at its border.
func cornersOf(x, y float64, w, h int) corners {
	fx, fy := math.Floor(x), math.Floor(y)
	p, q := float32(x-fx), float32(y-fy)
	x0, x1 := mirrored(int(fx), w), mirrored(int(fx)+1, w)
	y0, y1 := mirrored(int(fy), h)*w, mirrored(int(fy)+1, h)*w
	return corners{[4]int{y0 + x0, y0 + x1, y1 + x0, y1 + x1},
		[4]float32{(1 - q) * (1 - p), (1 - q) * p, q * (1 - p), q * p}}
}

// read returns the interpolated value of a plane.
func (c corners) read(plane []float32) float32 {
	return c.weight[0]*plane[c.at[0]] + c.weight[1]*plane[c.at[1]] + c.weight[2]*plane[c.at[2]] + c.weight[3]*plane[c.at[3]]
}

// mirrored reflects an index into a side of n pixels, with the border pixel repeated.
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

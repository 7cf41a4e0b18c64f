package video

import (
	"math"
	"math/rand/v2"
)

// A vector is a point or a direction in space: x to the right, y down, z away from the camera, in
// pixels of the frame from the object's centre.
type vector [3]float64

func (a vector) dot(b vector) float64 { return a[0]*b[0] + a[1]*b[1] + a[2]*b[2] }

func (a vector) unit() vector {
	s := 1 / math.Sqrt(a.dot(a))
	return vector{a[0] * s, a[1] * s, a[2] * s}
}

// A solid is an ellipsoid, a box, or an elliptic cylinder with a vertical axis.
type solid struct {
	kind   solidKind
	centre vector
	half   vector // half of its extent along each axis
}

type solidKind int

const (
	ellipsoid solidKind = iota
	box
	cylinder
	solidKinds // their number
)

// An object is the union of solids.
type object []solid

// newObject draws an object for frames with a given shorter side: a solid in the middle, and up to
// three smaller ones on its surface, which hide parts of it and of each other as the object turns.
func newObject(draw *rand.Rand, side float64) object {
	// size draws half extents between two fractions of the side.
	size := func(low, high float64) (v vector) {
		for k := range v {
			v[k] = side * (low + (high-low)*draw.Float64())
		}
		return v
	}
	body := solid{kind: solidKind(draw.IntN(int(solidKinds))), half: size(0.22, 0.34)}
	out := object{body}
	for range draw.IntN(4) {
		towards := vector{draw.NormFloat64(), draw.NormFloat64(), draw.NormFloat64()}.unit()
		part := solid{kind: solidKind(draw.IntN(int(solidKinds))), half: size(0.07, 0.15)}
		for k := range towards {
			part.centre[k] = towards[k] * body.half[k]
		}
		out = append(out, part)
	}
	return out
}

// hit returns where the ray from a point in a direction enters the solid, in multiples of the
// direction, and the normal of the surface there, not of unit length. It reports false for a ray
// that misses the solid.
func (s solid) hit(from, direction vector) (at float64, normal vector, ok bool) {
	var o, d vector // the ray where the solid's half extents are 1
	for k := range o {
		o[k], d[k] = (from[k]-s.centre[k])/s.half[k], direction[k]/s.half[k]
	}
	switch s.kind {
	case ellipsoid:
		at, _, normal, ok = round(o, d, vector{1, 1, 1})
	case box:
		at, _, normal, ok = slabs(o, d, 0, 1, 2)
	default: // the later of the entries into the round wall and between the caps
		wall, leavesWall, side, meets := round(o, d, vector{1, 0, 1})
		caps, leavesCaps, top, between := slabs(o, d, 1)
		at, normal = wall, side
		if caps > wall {
			at, normal = caps, top
		}
		ok = meets && between && at <= min(leavesWall, leavesCaps)
	}
	for k := range normal {
		normal[k] /= s.half[k]
	}
	return at, normal, ok && at > 0
}

// round returns where a ray enters and leaves the unit sphere, if the weights w are 1, or the unit
// cylinder along the axis of weight 0, and the normal where it enters.
func round(o, d, w vector) (at, leaves float64, normal vector, ok bool) {
	var a, b float64 // |w (o + t d)|^2 - 1 = a t^2 + 2 b t + c
	c := -1.0
	for k := range o {
		a, b, c = a+w[k]*d[k]*d[k], b+w[k]*o[k]*d[k], c+w[k]*o[k]*o[k]
	}
	root := math.Sqrt(b*b - a*c) // NaN for a ray that misses
	at, leaves = (-b-root)/a, (-b+root)/a
	for k := range normal {
		normal[k] = w[k] * (o[k] + at*d[k])
	}
	return at, leaves, normal, at <= leaves
}

// slabs returns where a ray enters and leaves the cube from -1 to 1 along the given axes, and the
// normal where it enters.
func slabs(o, d vector, axes ...int) (at, leaves float64, normal vector, ok bool) {
	at, leaves = math.Inf(-1), math.Inf(1)
	for _, k := range axes {
		side := math.Copysign(1, d[k]) // of the face that it leaves by
		if in := (-side - o[k]) / d[k]; in > at {
			at, normal = in, vector{}
			normal[k] = -side
		}
		leaves = min(leaves, (side-o[k])/d[k])
	}
	return at, leaves, normal, at <= leaves
}

// light is the direction to the lamp, behind the camera at its upper left.
var light = vector{-1, -1, -2}.unit()

// ambient is the brightness of a surface in the shade, as a fraction of the greatest.
const ambient = 0.35

// turned returns the view of an object that has turned about the axis (dx, dy) through its centre.
// sin and cos are those of the angle. The camera is at distance f, in pixels. Each of the six sides
// shows another part of the image; apart is the distance of their centres in the image. Behind the
// object is the image at rest. The lamp does not turn: the brightness follows Lambert's law.
func (b object) turned(sin, cos, dx, dy, f, apart float64) view {
	// back undoes the turn (see orbit): across is the direction (-dy, dx) within the frame.
	back := func(v vector) vector {
		along, across := v[0]*dx+v[1]*dy, v[1]*dx-v[0]*dy
		across, z := across*cos+v[2]*sin, v[2]*cos-across*sin
		return vector{along*dx - across*dy, along*dy + across*dx, z}
	}
	camera, lamp := back(vector{0, 0, -f}), back(light)
	radius := 0.0 // of a sphere around the object
	for _, s := range b {
		radius = max(radius, math.Sqrt(s.centre.dot(s.centre))+math.Sqrt(s.half.dot(s.half)))
	}
	return func(x, y float64) (u, v, brightness float64) {
		if r := x*x + y*y; r*f*f > radius*radius*(r+f*f) {
			return x, y, 1 // the ray passes by the sphere
		}
		direction := back(vector{x, y, f})
		nearest, normal := math.Inf(1), vector{}
		for _, s := range b {
			if at, n, ok := s.hit(camera, direction); ok && at < nearest {
				nearest, normal = at, n
			}
		}
		if math.IsInf(nearest, 1) {
			return x, y, 1
		}
		normal = normal.unit()
		var p vector
		for k := range p {
			p[k] = camera[k] + nearest*direction[k]
		}
		u, v = painted(p, normal, apart)
		return u, v, ambient + (1-ambient)*max(0, normal.dot(lamp))
	}
}

// painted returns the point of the image that a point p of the surface shows: the image is painted
// on each of the six sides of the object from outside.
func painted(p, normal vector, apart float64) (u, v float64) {
	size := vector{math.Abs(normal[0]), math.Abs(normal[1]), math.Abs(normal[2])}
	switch {
	case size[2] >= size[0] && size[2] >= size[1]:
		side := -math.Copysign(1, normal[2]) // 1 in front
		return side*p[0] + (1-side)*apart, p[1]
	case size[0] >= size[1]:
		side := math.Copysign(1, normal[0])
		return side * (p[2] + apart), p[1]
	}
	side := math.Copysign(1, normal[1])
	return p[0], side * (p[2] + apart)
}

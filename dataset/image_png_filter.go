package dataset

import (
	"encoding/binary"
	"fmt"
)

// undoFilter replaces the filtered bytes of a row by the unfiltered ones, and its first byte, the
// type of the filter, by 0 (none). above is the unfiltered row before, also with a byte for the
// type, or zeros. pixelBytes is the number of bytes of a pixel, at least 1. The filters are those
// of section 9 of the PNG specification: 1 Sub, 2 Up, 3 Average, 4 Paeth. Another type is an error.
func undoFilter(row, above []byte, pixelBytes int) error {
	filter := row[0]
	row[0] = 0
	x, up := row[1:], above[1:len(row)]
	switch filter {
	case 0:
	case 1:
		for i := pixelBytes; i < len(x); i++ {
			x[i] += x[i-pixelBytes]
		}
	case 2:
		addBytes(x, up)
	case 3:
		for i := range min(pixelBytes, len(x)) {
			x[i] += up[i] / 2
		}
		for i := pixelBytes; i < len(x); i++ {
			x[i] += byte((int(x[i-pixelBytes]) + int(up[i])) / 2)
		}
	case 4:
		undoPaeth(x, up, pixelBytes)
	default:
		return fmt.Errorf("unknown filter %d", filter)
	}
	return nil
}

// addBytes adds each byte of y to that of x, without carry to the next byte.
func addBytes(x, y []byte) {
	const low = 0x7f7f7f7f7f7f7f7f // all bits but the highest of each byte
	for len(x) >= 8 && len(y) >= 8 {
		a, b := binary.LittleEndian.Uint64(x), binary.LittleEndian.Uint64(y)
		binary.LittleEndian.PutUint64(x, (a&low+b&low)^(a^b)&^low)
		x, y = x[8:], y[8:]
	}
	for i := range x {
		x[i] += y[i]
	}
}

// undoPaeth undoes the Paeth filter of a row x; up is the row above. Both lack the byte with the
// type of the filter. The channels of RGB are computed side by side, since each byte depends on the
// one before in its channel.
func undoPaeth(x, up []byte, pixelBytes int) {
	if pixelBytes != 3 {
		for channel := range pixelBytes {
			var left, corner int32
			for i := channel; i < len(x) && i < len(up); i += pixelBytes {
				above := int32(up[i])
				x[i] += byte(paeth(left, above, corner))
				left, corner = int32(x[i]), above
			}
		}
		return
	}
	var left0, left1, left2, corner0, corner1, corner2 int32
	for len(x) >= 3 && len(up) >= 3 {
		above0, above1, above2 := int32(up[0]), int32(up[1]), int32(up[2])
		left0 = (int32(x[0]) + paeth(left0, above0, corner0)) & 0xff
		left1 = (int32(x[1]) + paeth(left1, above1, corner1)) & 0xff
		left2 = (int32(x[2]) + paeth(left2, above2, corner2)) & 0xff
		x[0], x[1], x[2] = byte(left0), byte(left1), byte(left2)
		corner0, corner1, corner2 = above0, above1, above2
		x, up = x[3:], up[3:]
	}
}

// paeth returns the neighbour that is nearest to left + above - corner, where corner is the one
// above to the left: the Paeth predictor of PNG. The compiler turns its conditions into conditional
// moves, since processors cannot predict branches here.
func paeth(left, above, corner int32) int32 {
	toLeft, toAbove := above-corner, left-corner
	toCorner := magnitude(toLeft + toAbove)
	toLeft, toAbove = magnitude(toLeft), magnitude(toAbove)
	nearest, distance := left, toLeft
	if toAbove < distance {
		nearest = above
	}
	distance = min(distance, toAbove)
	if toCorner < distance {
		nearest = corner
	}
	return nearest
}

// magnitude returns |v|.
func magnitude(v int32) int32 { return (v ^ v>>31) - v>>31 }

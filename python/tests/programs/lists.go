// A program in Go: goroutines, a heap that is collected.
package main

import (
	"os"
	"runtime"
	"sync"
)

type node struct {
	next  *node
	value [4]uint64
}

//go:noinline
func txBegin() {}

//go:noinline
func txCommit() {}

var list *node

func main() {
	// Transactions are those of threads.
	runtime.LockOSThread()
	var lock sync.Mutex
	for number := uint64(0); number < 200; number++ {
		lock.Lock()
		txBegin()
		list = &node{list, [4]uint64{number}}
		if number%50 == 49 {
			list = list.next
		}
		txCommit()
		lock.Unlock()
		if number == 100 {
			runtime.GC()
		}
	}
	count := 0
	for at := list; at != nil; at = at.next {
		count++
	}
	if count != 196 {
		os.Exit(1)
	}
}

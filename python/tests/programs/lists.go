// A program in Go: goroutines, a heap that is collected. With `moves`, another goroutine in another thread ends each transaction.
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

func commits(begun, done chan bool) {
	runtime.LockOSThread()
	for range begun {
		txCommit()
		done <- true
	}
}

func main() {
	// Transactions are those of threads.
	runtime.LockOSThread()
	moves := os.Args[len(os.Args)-1] == "moves"
	begun, done := make(chan bool), make(chan bool)
	if moves {
		go commits(begun, done)
	}
	var lock sync.Mutex
	for number := uint64(0); number < 200; number++ {
		lock.Lock()
		txBegin()
		list = &node{list, [4]uint64{number}}
		if number%50 == 49 {
			list = list.next
		}
		if moves {
			begun <- true
			<-done
		} else {
			txCommit()
		}
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

"""Loops that run within the JVM: from Python, each call takes a tenth of a millisecond.

Their bodies consist of Java method handles, because a Python function would be a callback.
"""

from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary

from zadapter.spark.jvm.gateway import gateway_of, jvm_of
from zadapter.spark.jvm.java_classes import java_classes

JavaObject = Any

_ITEM = "java.lang.Object"
_FUNCTIONS = "java.util.function"
_BOXED = {"int": "java.lang.Integer", "long": "java.lang.Long", "boolean": "java.lang.Boolean"}
JAVA = 8
"""The newest version of Java's language that Janino compiles."""
_shared: WeakKeyDictionary[Any, "Loops"] = WeakKeyDictionary()
"""The loops of each JVM, for the class loader that was asked for last."""


def loops_of(spark: Any) -> "Loops":
    """Return loops in the JVM of a session, which later calls share.

    A handle is found by about ten calls into Java. Classes are those of the thread's class loader.
    """
    classes, jvm = java_classes(spark), jvm_of(spark)
    loader = classes.java.lang.Thread.currentThread().getContextClassLoader()
    known = _shared.get(jvm)
    if known is None or known.loader != loader:
        known = _shared[jvm] = Loops(classes, gateway_of(spark.sparkContext), loader)
    return known


class Loops:
    """Method handles of one class loader, and loops over them.

    All handles take and return objects, so they fit together without further conversions.
    """

    def __init__(self, jvm: JavaObject, gateway: Any, loader: JavaObject) -> None:
        """Find classes by *loader*."""
        self.loader = loader
        self._jvm = jvm
        self._gateway = gateway
        self._handles = jvm.java.lang.invoke.MethodHandles
        self._classes: dict[str, JavaObject] = {}
        self._kept: dict[tuple[str, ...], JavaObject] = {}
        self._ids: set[str] = set()

    def method(self, class_: str, name: str, *arguments: str) -> JavaObject:
        """Return the handle of a public method; it takes an instance of *class_* first."""
        key = class_, name, *arguments
        if key not in self._kept:
            found = self._handles.publicLookup().unreflect(self._reflect(class_, name, arguments))
            self._keep(key, found.asType(found.type().generic()))
        return self._kept[key]

    def constructor(self, class_: str, *arguments: str) -> JavaObject:
        """Return the handle of a public constructor."""
        key = class_, "<init>", *arguments
        if key not in self._kept:
            made = self.class_of(class_).getConstructor(self._types(arguments))
            found = self._handles.publicLookup().unreflectConstructor(made)
            self._keep(key, found.asType(found.type().generic()))
        return self._kept[key]

    def chain(self, first: JavaObject, second: JavaObject) -> JavaObject:
        """Return a handle that passes the result of *first* to *second*."""
        key = "chain", _id(first), _id(second)
        if key not in self._kept:
            chained = self._handles.filterReturnValue(first, second)
            if not {_id(first), _id(second)} <= self._ids:
                return chained
            self._keep(key, chained)
        return self._kept[key]

    def _keep(self, key: tuple[str, ...], handle: JavaObject) -> None:
        """Keep a handle of methods alone: others have values of a call."""
        self._kept[key] = handle
        self._ids.add(_id(handle))

    def bind(self, handle: JavaObject, at: int, *values: Any) -> JavaObject:
        """Return *handle* with fixed arguments from place *at* on."""
        return self._handles.insertArguments(handle, at, self._objects(values))

    def adding_to(self, items: JavaObject) -> JavaObject:
        """Return a handle that adds its argument to the collection *items*."""
        return self.method("java.util.Collection", "add", _ITEM).bindTo(items)

    def where(self, test: JavaObject, handle: JavaObject) -> JavaObject:
        """Return a handle that calls *handle* with an item if *test* holds for it."""
        nothing = self._handles.empty(handle.type())
        return self._handles.guardWithTest(self._truth_of(test), handle, nothing)

    def negate(self, test: JavaObject) -> JavaObject:
        """Return a handle of the opposite of *test*."""
        key = ("negate",)
        if key not in self._kept:
            equals = self.method(_ITEM, "equals", _ITEM)
            self._keep(key, equals.bindTo(False))  # noqa: FBT003
        return self.chain(test, self._kept[key])

    def either(self, test: JavaObject, other: JavaObject) -> JavaObject:
        """Return a handle of whether one of two tests of the same items holds."""
        true = self._handles.constant(self.class_of(_ITEM), True)  # noqa: FBT003
        always = self._handles.dropArguments(true, 0, test.type().parameterArray())
        return self._handles.guardWithTest(self._truth_of(test), always, other)

    def _truth_of(self, test: JavaObject) -> JavaObject:
        return test.asType(test.type().changeReturnType(self.class_of("boolean")))

    def consumer(self, handle: JavaObject) -> JavaObject:
        """Return a handle of one argument as a ``java.util.function.Consumer``."""
        return self._instance("Consumer", handle)

    def function(self, handle: JavaObject) -> JavaObject:
        """Return a handle of one argument as a ``java.util.function.Function``."""
        return self._instance("Function", handle)

    def for_each(self, iterator: JavaObject, handle: JavaObject) -> None:
        """Call *handle* with each item that an iterator has left.

        Py4j does not find default methods of interfaces, such as this one, in classes that are not
        public.
        """
        key = ("each remaining",)
        if key not in self._kept:
            consumer = f"{_FUNCTIONS}.Consumer"
            self._kept[key] = self._reflect("java.util.Iterator", "forEachRemaining", [consumer])
        self._kept[key].invoke(iterator, self._objects([self.consumer(handle)]))

    def sort(self, items: JavaObject, key: JavaObject) -> None:
        """Sort a ``java.util.List`` by what the handle *key* returns for each item."""
        order = self._jvm.java.util.Comparator.comparing(self.function(key))
        self._jvm.java.util.Collections.sort(items, order)  # py4j's lists have a sort of their own

    def map_items(self, items: JavaObject, handle: JavaObject) -> JavaObject:
        """Return what *handle* returns for each item of a collection, as a ``java.util.List``."""
        results = self._jvm.java.util.ArrayList(items)
        results.replaceAll(self._instance("UnaryOperator", handle))
        return results

    def select_items(self, items: JavaObject, test: JavaObject) -> JavaObject:
        """Return the items of a collection for which *test* holds, as a ``java.util.List``."""
        found = self._jvm.java.util.ArrayList(items)
        found.removeIf(self._instance("Predicate", self.negate(test)))
        return found

    def scala_function(self, handle: JavaObject) -> JavaObject:
        """Return a handle of one argument as Scala's ``Function1``."""
        return self._instance("Function1", handle, "scala")

    def filter_iterator(self, items: JavaObject, test: JavaObject) -> JavaObject:
        """Return Hadoop's ``RemoteIterator`` of the items of another one for which *test* holds."""
        functional = self._jvm.org.apache.hadoop.util.functional
        holds = self._instance("FunctionRaisingIOE", test, "org.apache.hadoop.util.functional")
        return functional.RemoteIterators.filteringRemoteIterator(items, holds)

    def _instance(self, name: str, handle: JavaObject, package: str = _FUNCTIONS) -> JavaObject:
        """Return a handle as an instance of an interface."""
        key = "instance", name, _id(handle)
        if key not in self._kept:
            proxies = self._jvm.java.lang.invoke.MethodHandleProxies
            made = proxies.asInterfaceInstance(self.class_of(f"{package}.{name}"), handle)
            if _id(handle) not in self._ids:
                return made
            self._kept[key] = made
        return self._kept[key]

    def _objects(self, values: Sequence[Any]) -> JavaObject:
        objects = self._gateway.new_array(self._jvm.java.lang.Object, len(values))
        for number, value in enumerate(values):
            objects[number] = value
        return objects

    def _reflect(self, class_: str, name: str, arguments: Sequence[str]) -> JavaObject:
        return self.class_of(class_).getMethod(name, self._types(arguments))

    def _types(self, names: Sequence[str]) -> JavaObject:
        types = self._gateway.new_array(self._jvm.java.lang.Class, len(names))
        for number, name in enumerate(names):
            types[number] = self.class_of(name)
        return types

    def class_of(self, name: str) -> JavaObject:
        """Return a class by its name, also of the session's added packages, or a primitive type."""
        if name not in self._classes:
            self._classes[name] = self._find_class(name)
        return self._classes[name]

    def compile(self, name: str, source: str, used: JavaObject = None) -> JavaObject:
        """Return a class by its name, for loops that handles cannot express.

        Janino compiles it, as it compiles Spark's queries, beside the classes of the loader.

        Args:
            name: The class, which is known after its first use.
            source: Its source, in the language of Java 8 without lambdas.
            used: A compiled class that the source uses; None: it uses none.
        """
        if name not in self._classes:
            compiler = self._jvm.org.codehaus.janino.SimpleCompiler()
            loader = self.loader if used is None else used.getClassLoader()
            compiler.setParentClassLoader(loader)
            compiler.setSourceVersion(JAVA)
            compiler.setTargetVersion(JAVA)
            compiler.cook(source)
            self._classes[name] = compiler.getClassLoader().loadClass(name)
        return self._classes[name]

    def _find_class(self, name: str) -> JavaObject:
        boxed = _BOXED.get(name)
        if boxed is not None:
            return self.class_of(boxed).getField("TYPE").get(None)
        return self._jvm.java.lang.Class.forName(name, True, self.loader)  # noqa: FBT003


def _id(java: JavaObject) -> str:
    """Return the name that py4j has for an object of Java, which no other one has meanwhile."""
    return str(java._target_id)  # noqa: SLF001
